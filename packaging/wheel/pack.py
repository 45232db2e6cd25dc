"""Writes the files named into a wheel, and last the list of their digests, which cannot hold its own.

Times are the first that the format has, so that the same files make the same archive.
"""

import base64, hashlib, sys, zipfile

path, record, *names = sys.argv[1:]
lines = []
with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:

    def add(name, data):
        info = zipfile.ZipInfo(name)
        info.compress_type = zipfile.ZIP_DEFLATED
        info.external_attr = (0o100755 if "/scripts/" in name else 0o100644) << 16
        wheel.writestr(info, data)

    for name in names:
        data = open(name, "rb").read()
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
        lines.append(f"{name},sha256={digest},{len(data)}")
        add(name, data)
    add(record, "\n".join([*lines, record + ",,", ""]))
