"""Creates a container in an emulator of Azure Blob Storage.

Usage: azure_container.py ENDPOINT ACCOUNT KEY CONTAINER. The client library of the program cannot create one.
"""

import base64
import hashlib
import hmac
import sys
import urllib.request
from email.utils import formatdate

endpoint, account, key, container = sys.argv[1:]
date, version = formatdate(usegmt=True), "2021-12-02"
headers = f"x-ms-date:{date}\nx-ms-version:{version}"
resource = f"/{account}/{account}/{container}\nrestype:container"
# Method, then eleven standard headers, all empty.
signed = "PUT" + "\n" * 12 + headers + "\n" + resource
signature = base64.b64encode(hmac.new(base64.b64decode(key), signed.encode(), hashlib.sha256).digest()).decode()
request = urllib.request.Request(
    f"{endpoint}/{account}/{container}?restype=container",
    method="PUT",
    headers={
        "x-ms-date": date,
        "x-ms-version": version,
        "Content-Length": "0",
        "Authorization": f"SharedKey {account}:{signature}",
    },
)
with urllib.request.urlopen(request, timeout=10) as answer:
    assert answer.status == 201, answer.status
