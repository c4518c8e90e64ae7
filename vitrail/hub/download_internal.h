// SPDX-License-Identifier: Apache-2.0
#pragma once
// Downloads one file into a blob, continuing what an earlier process has left.
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "vitrail/hub/http_internal.h"

namespace vitrail::hub {

struct Download {
  std::string url, file;  // file: "org/name: model.safetensors", for messages
  std::string repository;
  std::filesystem::path blob;  // named by the digest of the content
  int64_t size = 0;
};

// Writes to BLOB.vitrail-partial and gives it its name when size and digest are right.  The caller holds the lock of
// the blob.  on_bytes: called with the bytes that are there, which may become fewer.  Throws Error; what was received
// stays for the next try, unless its digest is wrong.
void download(HttpClient& client, const Download& download, const std::function<void(int64_t)>& on_bytes);

// The bytes that are there already.
int64_t partial_bytes(const std::filesystem::path& blob);

// Whether a file's name is that of a partial download.
bool is_partial_name(const std::string& name);

// What an HTTP status other than success means for a model, and what to do.
[[noreturn]] void throw_hub_error(const HttpResponse& response, const Settings& settings, const std::string& repository,
                                  const std::string& what);

}  // namespace vitrail::hub
