"""An agent that nobody watches, started by a client: `python -m intergroup_core.agent HOME IDLE_S FD ADVERTISE`.

It goes on in a process of its own session that nobody waits for, says through the descriptor that it is ready, or
why it is not, and writes what it has to say to a file.
"""

from __future__ import annotations

import os
import sys


def main(home: str, idle_s: float, ready_fd: int, advertise: str) -> None:
    if os.fork():
        os._exit(0)  # the client that started it waits for this process only
    os.setsid()
    os.chdir("/")
    # What follows is imported after the fork: the client waits less for the process that ends.
    import asyncio
    import logging
    from logging.handlers import RotatingFileHandler

    from intergroup_core.agent.daemon import Daemon
    from intergroup_core.client.directories import site_directories
    from intergroup_core.errors import IntergroupError

    def ready(text: str = "ready") -> None:
        os.write(ready_fd, text.encode())
        os.close(ready_fd)

    async def run() -> None:
        await Daemon(directories, idle_s=idle_s, advertise=advertise).run(ready)

    try:
        directories = site_directories(home or None)
        directories.make()
        handler = RotatingFileHandler(directories.output, maxBytes=1_000_000, backupCount=1)
        logging.basicConfig(
            level=logging.INFO, handlers=[handler], format="%(asctime)s %(levelname)s %(name)s: %(message)s"
        )
        asyncio.run(run())
    except IntergroupError as error:
        ready(str(error))
        sys.exit(1)
    except Exception as error:
        logging.getLogger(__name__).exception("the agent ends")
        ready(f"the agent could not start: {error!r}")
        sys.exit(1)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
