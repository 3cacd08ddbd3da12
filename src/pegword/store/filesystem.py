"""Whether a file lies on a network or virtual file system, where SQLite's shared memory is not safe."""

from pathlib import Path

_NETWORK = frozenset(
    "nfs nfs4 cifs smb3 smbfs smb2 9p virtiofs ceph glusterfs lustre afs ncpfs davfs vboxsf prl_fs gpfs beegfs ocfs2 gfs2 "
    "sshfs webdav afpfs drvfs".split()
)
_MOUNTS = Path("/proc/self/mountinfo")


def network_file_system(path: Path, mounts: str | None = None) -> str:
    """The name of the network file system that *path* lies on, or "" when it is local or cannot be told.

    *mounts* is the text of ``/proc/self/mountinfo`` (read when None).
    """
    kind = file_system(path, mounts)
    return kind if kind in _NETWORK or kind.startswith("fuse.") else ""


def file_system(path: Path, mounts: str | None = None) -> str:
    """The name of the file system that *path* lies on, "" when that cannot be told; *mounts* as for `network_file_system`."""
    if mounts is None:
        try:
            mounts = _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape")
        except OSError:
            return ""
    folder = path.resolve().parent
    best, kind = -1, ""
    for line in mounts.splitlines():
        fields, _, rest = line.partition(" - ")
        words = fields.split()
        if len(words) < 5 or not rest:
            continue
        at = Path(words[4].replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\"))
        if len(at.parts) >= best and (folder == at or at in folder.parents):
            best, kind = len(at.parts), rest.split()[0]
    return kind
