// SPDX-License-Identifier: Apache-2.0
#pragma once
// The files of a repository at one commit, as the hub lists them and as the cache keeps the list.
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/hub/layout_internal.h"

namespace vitrail::hub {

struct HubFile {
  int64_t size = 0;
  std::string blob_id;     // git's SHA-1; of a file in large file storage: that of its pointer
  std::string lfs_sha256;  // empty: not in large file storage
  std::string xet_hash;    // kept for huggingface_hub

  // The blob's name: the digest of the content.
  const std::string& etag() const { return lfs_sha256.empty() ? blob_id : lfs_sha256; }
};

using FileList = std::map<std::string, HubFile>;  // by path

// Adds the files of one page of the hub's reply to api/models/ORG/NAME/tree/COMMIT.  Throws Error for other JSON, and
// for paths that lead out of the folder.
void add_listed_files(const std::string& json, const std::string& where, FileList& files);

// The list that the cache keeps of a commit; nothing if there is none, or if it is damaged or of another version.
std::optional<FileList> read_tree(const Layout& layout, const std::string& commit);
void write_tree(const Layout& layout, const std::string& commit, const FileList& files);

// The files that inference needs beside the weights: configurations and tokenizers.
bool is_needed_beside_weights(const std::string& path);
bool is_tokenizer_file(const std::string& path);

}  // namespace vitrail::hub
