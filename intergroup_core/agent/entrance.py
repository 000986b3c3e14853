"""How others come to this site's logs, the same across restarts: a slice that was planned before leads here still."""

from __future__ import annotations

import hmac
import json
import logging
import secrets
from pathlib import Path

from intergroup_core.runtime.home import replace_durably
from intergroup_core.wire.keeping import TOKEN_BYTES

_log = logging.getLogger(__name__)

FORMAT = 1
SECRET_BYTES = 32
MAX_FILE_BYTES = 65_536
MAX_PORT = 65_535


class Entrance:
    """A secret of which every group's token is made, and the port last listened at, by address.

    A site that cannot keep them has new ones each time: whoever has the old ones asks who keeps the log.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._secret, self._ports = _read(path)

    def token_of(self, group: str) -> bytes:
        return hmac.digest(self._secret, group.encode(errors="surrogatepass"), "sha256")[:TOKEN_BYTES]

    def port_of(self, address: str) -> int:
        """Where to listen; 0 where any port will do."""
        return self._ports.get(address, 0)

    def listens(self, address: str, port: int) -> None:
        """Remember it."""
        if self._ports.get(address) == port:
            return
        self._ports[address] = port
        content = {"format": FORMAT, "secret": self._secret.hex(), "ports": self._ports}
        try:
            replace_durably(self._path, json.dumps(content, sort_keys=True).encode() + b"\n")
        except OSError as error:
            _log.warning("%s cannot be written (%s): after a restart logs are served elsewhere", self._path, error)


def _read(path: Path) -> tuple[bytes, dict[str, int]]:
    try:
        match json.loads(path.read_bytes()[:MAX_FILE_BYTES]):
            case {"format": int(version), "secret": str(secret), "ports": dict(ports)} if version == FORMAT:
                found = bytes.fromhex(secret)
                whole = all(type(port) is int and 0 < port <= MAX_PORT for port in ports.values())
                if whole and len(found) == SECRET_BYTES:
                    return found, ports
        _log.warning("%s is not what an agent wrote; it is made anew", path)
    except FileNotFoundError:
        pass
    except (OSError, ValueError) as error:
        _log.warning("%s cannot be read (%s); it is made anew", path, error)
    return secrets.token_bytes(SECRET_BYTES), {}
