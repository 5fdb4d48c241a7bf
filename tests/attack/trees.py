"""Folders before and after an attack: what is in them, and what has changed."""
import hashlib
import os
import stat


def snapshot(folder):
    """Every name below the folder with its kind, content and time of change. Links and pipes are not followed."""
    found = {}
    for parent, folders, files in os.walk(folder):
        for name in folders + files:
            path = os.path.join(parent, name)
            status = os.lstat(path)
            kind = stat.S_IFMT(status.st_mode)
            content = ""
            if kind == stat.S_IFLNK:
                content = os.readlink(path)
            elif kind == stat.S_IFREG:
                with open(path, "rb") as file:
                    content = hashlib.sha256(file.read()).hexdigest()
            when = status.st_mtime_ns if kind == stat.S_IFREG else 0
            found[os.path.relpath(path, folder)] = (kind, content, when)
    return found


def changes(before, after):
    """The names that were added, removed or changed, for a message."""
    words = [f"{name} appeared" for name in sorted(after.keys() - before.keys())]
    words += [f"{name} is gone" for name in sorted(before.keys() - after.keys())]
    words += [f"{name} changed" for name in sorted(before.keys() & after.keys()) if before[name] != after[name]]
    return ", ".join(words[:6])


def remove(path):
    """Whatever is there: file, link, pipe or folder."""
    if os.path.islink(path) or not os.path.isdir(path):
        if os.path.lexists(path):
            os.unlink(path)
        return
    for entry in os.listdir(path):
        remove(os.path.join(path, entry))
    os.rmdir(path)
