# SPDX-License-Identifier: Apache-2.0
"""A stand-in for the Hugging Face hub on 127.0.0.1, with faults, for tests of downloads."""

import hashlib
import http.server
import json
import threading
import time
import urllib.parse


def blob_id(content):
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


class Repository:
    """Files by commit.  Those of at least lfs_bytes are in large file storage."""

    def __init__(self, files, commit="a" * 40, lfs_bytes=10_000, gated=False):
        self.commits = {commit: files}
        self.revisions = {"main": commit}
        self.lfs_bytes, self.gated = lfs_bytes, gated

    def listed(self, commit):
        entries = []
        for path, content in sorted(self.commits[commit].items()):
            entry = {"type": "file", "path": path, "size": len(content), "oid": blob_id(content)}
            if len(content) >= self.lfs_bytes:
                digest = hashlib.sha256(content).hexdigest()
                entry["lfs"] = {"oid": digest, "size": len(content), "pointerSize": 134}
            entries.append(entry)
        return entries


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, status, body=b"", headers=None, length=None):
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def fail(self, status, code):
        self.reply(status, b"{}", {"X-Error-Code": code} if code else {})

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        hub = self.server.hub
        hub.requests.append((self.command, self.path, dict(self.headers)))
        url = urllib.parse.urlsplit(self.path)
        parts = [urllib.parse.unquote(part) for part in url.path.strip("/").split("/")]
        try:
            if parts[0] == "cdn":
                self.content(hub.contents[parts[1]])
            elif parts[:2] == ["api", "models"]:
                self.api(hub, "/".join(parts[2:4]), parts[4], parts[5], urllib.parse.parse_qs(url.query))
            elif len(parts) < 5:
                self.fail(404, "")
            else:
                self.resolve(hub, "/".join(parts[:2]), parts[3], "/".join(parts[4:]))
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def repository(self, hub, name):
        if hub.faults and hub.faults[0] in ("429", "500"):
            status = int(hub.faults.pop(0))
            self.reply(status, b"", {"Retry-After": "1"} if status == 429 else {})
            return None
        repository = hub.repositories.get(name)
        if repository is None:
            self.fail(404, "RepoNotFound")
        elif repository.gated and self.headers.get("Authorization") != "Bearer hf_good":
            self.fail(401 if "Authorization" not in self.headers else 403, "GatedRepo")
        else:
            return repository
        return None

    def api(self, hub, name, what, revision, query):
        repository = self.repository(hub, name)
        if repository is None:
            return
        commit = repository.revisions.get(revision, revision)
        if commit not in repository.commits:
            self.fail(404, "RevisionNotFound")
        elif what == "revision":
            siblings = [{"rfilename": path} for path in repository.commits[commit]]
            self.reply(200, json.dumps({"id": name, "sha": commit, "siblings": siblings}).encode())
        else:
            entries = hub.listing or repository.listed(commit)
            first = int(query.get("cursor", ["0"])[0])
            headers = {}
            if first + hub.page < len(entries):
                headers["Link"] = f'<{hub.url}{self.path.split("?")[0]}?cursor={first + hub.page}>; rel="next"'
            self.reply(200, json.dumps(entries[first : first + hub.page]).encode(), headers)

    def resolve(self, hub, name, revision, path):
        repository = self.repository(hub, name)
        if repository is None:
            return
        commit = repository.revisions.get(revision, revision)
        content = repository.commits.get(commit, {}).get(path)
        if content is None:
            self.fail(404, "EntryNotFound" if commit in repository.commits else "RevisionNotFound")
            return
        headers = {"X-Repo-Commit": commit}
        if len(content) < repository.lfs_bytes:
            self.reply(200, content, {**headers, "ETag": f'"{blob_id(content)}"'})
            return
        digest = hashlib.sha256(content).hexdigest()
        hub.contents[digest] = content
        headers |= {"X-Linked-Etag": f'"{digest}"', "X-Linked-Size": str(len(content)), "ETag": f'"{digest}"'}
        self.reply(302, b"", {**headers, "Location": f"{hub.cdn_url}/cdn/{digest}"})

    def content(self, content):
        """A file of the storage, whose ETag is not the hub's, with the next fault."""
        hub = self.server.hub
        fault = hub.faults.pop(0) if hub.faults and self.command == "GET" else ""
        tag = '"storage-' + hub.storage_version + '"'
        start, wanted = 0, self.headers.get("Range", "")
        if wanted.startswith("bytes=") and self.headers.get("If-Range", tag) == tag and fault != "ignore range":
            start = int(wanted[6:].split("-")[0])
        if fault == "416" or start >= len(content):
            self.reply(416)
            return
        if fault == "other range":
            start += 1
        headers = {"ETag": tag}
        if start or wanted and fault != "ignore range" and self.headers.get("If-Range", tag) == tag:
            headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        body = content[start:]
        if fault == "corrupt":
            body = body[:-1] + bytes([body[-1] ^ 1])
        elif fault == "longer":
            body += b"more"
        status = 206 if "Content-Range" in headers else 200
        if fault.startswith("cut "):
            self.reply(status, body[: int(fault[4:])], headers, length=len(body))
            self.close_connection = True
        elif fault == "stall":
            self.reply(status, body[:1000], headers, length=len(body))
            self.wfile.flush()
            time.sleep(hub.stall_s)
            self.close_connection = True
        elif hub.bytes_per_s or hub.before_chunk:
            self.throttled(status, body, headers, start)
        else:
            self.reply(status, body, headers)

    def throttled(self, status, body, headers, position):
        hub, chunk = self.server.hub, 65_536
        self.reply(status, body[:chunk], headers, length=len(body))
        for start in range(chunk, len(body), chunk):
            if hub.before_chunk:
                hub.before_chunk(position + start)
            else:
                time.sleep(chunk / hub.bytes_per_s)
            self.wfile.write(body[start : start + chunk])


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        """A client that was killed is no error here."""


class Hub:
    """Two servers: the hub, and the storage that it redirects to.

    faults: taken one by one, by requests for contents ("cut 1000", "stall", "corrupt", "longer", "416", "ignore range",
    "other range") or by requests to the hub ("429", "500").
    before_chunk: called with the number of bytes that were sent of a file, before more of them are.
    """

    def __init__(self, repositories):
        self.repositories = repositories
        self.requests, self.faults, self.contents = [], [], {}
        self.listing, self.page, self.stall_s, self.bytes_per_s, self.storage_version = None, 1000, 3, 0, "1"
        self.before_chunk = None
        self.servers = [Server(("127.0.0.1", 0), Handler) for _ in range(2)]
        for server in self.servers:
            server.hub = self
            threading.Thread(target=server.serve_forever, daemon=True).start()
        self.url, self.cdn_url = (f"http://127.0.0.1:{server.server_port}" for server in self.servers)

    def contents_requested(self):
        return [headers for _, path, headers in self.requests if path.startswith("/cdn/")]

    def close(self):
        for server in self.servers:
            server.shutdown()
            server.server_close()
