// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <nlohmann/json.hpp>

#include "vitrail/base/atomic_file.h"
#include "vitrail/base/error.h"
#include "vitrail/base/read_file.h"
#include "vitrail/hub/blob_digest_internal.h"
#include "vitrail/hub/file_list_internal.h"

namespace vitrail::hub {
namespace fs = std::filesystem;
namespace {

using nlohmann::json;

constexpr int kTreeVersion = 1;
constexpr size_t kMaxTreeBytes = 64 << 20;
constexpr int64_t kMaxFileBytes = int64_t{1} << 50;

constexpr const char* kConfigurations[] = {"config.json", "preprocessor_config.json", "processor_config.json",
                                           "open_clip_config.json"};
constexpr const char* kTokenizerFiles[] = {"tokenizer.json",
                                           "tokenizer_config.json",
                                           "vocab.json",
                                           "merges.txt",
                                           "added_tokens.json",
                                           "special_tokens_map.json",
                                           "spiece.model",
                                           "sentencepiece.model",
                                           "bpe_simple_vocab_16e6.txt",
                                           "bpe_simple_vocab_16e6.txt.gz"};

// A path below the snapshot's folder, on every system.
bool is_safe_path(const std::string& path) {
  constexpr size_t kMaxLength = 1024;
  if (path.empty() || path.size() > kMaxLength || path.front() == '/' || path.back() == '/') return false;
  if (path.find_first_of("\\:") != path.npos) return false;
  if (std::ranges::any_of(path, [](char c) { return static_cast<unsigned char>(c) < ' '; })) return false;
  return std::ranges::none_of(fs::path(path),
                              [](const fs::path& part) { return part.empty() || part == "." || part == ".."; });
}

HubFile checked(HubFile file, const std::string& path, const std::string& where) {
  if (!is_safe_path(path)) {
    throw Error(where, "paths of files below the model's folder", "\"" + path.substr(0, 80) + "\"");
  }
  const bool named = file.lfs_sha256.empty() ? is_hex(file.blob_id, 40) : is_hex(file.lfs_sha256, 64);
  if (!named) throw Error(where, "a SHA-1 or SHA-256 of " + path, "\"" + file.etag().substr(0, 80) + "\"");
  if (file.size < 0 || file.size > kMaxFileBytes) throw Error(where, "the size of " + path, str(file.size));
  return file;
}

HubFile listed_file(const json& entry) {
  HubFile file{entry.at("size").get<int64_t>(), entry.at("oid").get<std::string>(), "", ""};
  if (const auto lfs = entry.find("lfs"); lfs != entry.end() && lfs->is_object()) {
    file.lfs_sha256 = lfs->at("oid").get<std::string>();
    file.size = lfs->at("size").get<int64_t>();
  }
  if (const auto xet = entry.find("xetHash"); xet != entry.end() && xet->is_string()) file.xet_hash = *xet;
  return file;
}

HubFile tree_file(const json& entry) {
  HubFile file{entry.at("size").get<int64_t>(), entry.at("blob_id").get<std::string>(),
               entry.value("lfs_sha256", std::string()), entry.value("xet_hash", std::string())};
  if (!file.lfs_sha256.empty()) file.size = entry.value("lfs_size", file.size);
  return file;
}

}  // namespace

void add_listed_files(const std::string& text, const std::string& where, FileList& files) try {
  const json page = json::parse(text);
  if (!page.is_array()) throw Error(where, "a list of files", page.type_name());
  for (const json& entry : page) {
    if (entry.at("type") != "file") continue;
    const auto path = entry.at("path").get<std::string>();
    files[path] = checked(listed_file(entry), path, where);
  }
} catch (const json::exception& error) {
  throw Error(where, "the hub's list of files", error.what());
}

// huggingface_hub ignores a damaged listing, too, and the next pull replaces it.
std::optional<FileList> read_tree(const Layout& layout, const std::string& commit) {
  const fs::path path = layout.tree(commit);
  std::error_code unreadable;
  if (!fs::is_regular_file(path, unreadable)) return std::nullopt;
  try {
    const json tree = json::parse(read_text_file(path, kMaxTreeBytes));
    if (tree.at("format_version") != kTreeVersion) return std::nullopt;
    FileList files;
    for (const auto& [name, entry] : tree.at("files").items()) {
      files[name] = checked(tree_file(entry), name, path.string());
    }
    return files;
  } catch (const json::exception&) {
    return std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
}

void write_tree(const Layout& layout, const std::string& commit, const FileList& files) {
  json entries = json::object();
  for (const auto& [path, file] : files) {
    json& entry = entries[path] = {{"size", file.size}, {"blob_id", file.blob_id}};
    if (!file.lfs_sha256.empty()) {
      entry["lfs_sha256"] = file.lfs_sha256;
      entry["lfs_size"] = file.size;
    }
    if (!file.xet_hash.empty()) entry["xet_hash"] = file.xet_hash;
  }
  create_folders(layout.tree(commit).parent_path());
  AtomicFile out(layout.tree(commit));
  out.write(json{{"format_version", kTreeVersion}, {"files", entries}}.dump(1));
  out.commit();
}

bool is_tokenizer_file(const std::string& path) {
  return std::ranges::find(kTokenizerFiles, path) != std::end(kTokenizerFiles);
}

bool is_needed_beside_weights(const std::string& path) {
  return is_tokenizer_file(path) || std::ranges::find(kConfigurations, path) != std::end(kConfigurations);
}

}  // namespace vitrail::hub
