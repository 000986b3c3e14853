"""What `import intergroup_core` offers to programs: joining a group, sending, and the events of its stream."""
