"""The one long-lived process of a site: it runs the site's members and keeps their logs."""
