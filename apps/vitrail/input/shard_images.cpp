// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/input/shard_images.h"

#include <algorithm>
#include <fstream>
#include <set>

#include "apps/vitrail/output/output.h"
#include "vitrail/base/digest_internal.h"
#include "vitrail/base/error.h"

namespace vitrail::app {
namespace {

bool is_shard(const std::string& input) { return input.ends_with(".tar"); }

// The path up to the first dot of the file's name, as webdataset has it.
std::string key_of(const std::string& path) {
  const size_t name = path.rfind('/') == path.npos ? 0 : path.rfind('/') + 1;
  return path.substr(0, path.find('.', name));
}

TarListing listing_of(const MappedFile& file) {
  if (!is_tar(file.bytes())) throw Error(file.path().string(), "a tar archive", "other data");
  return read_tar(file.bytes(), file.path().string());
}

std::vector<TarEntry> images_in(std::vector<TarEntry> entries) {
  std::erase_if(entries, [](const TarEntry& entry) {
    return !image::is_image_path(entry.path) || data::is_ignored_path(entry.path);
  });
  std::ranges::sort(entries, {}, &TarEntry::path);
  return entries;
}

}  // namespace

bool are_shards(const std::vector<std::string>& inputs) {
  const auto shards = std::ranges::count_if(inputs, is_shard);
  if (shards == 0) return false;
  if (shards == std::ssize(inputs)) return true;
  throw CLI::ValidationError("INPUT", "either shards (.tar) or other inputs");
}

ShardImages::ShardImages(const std::filesystem::path& path)
    : file_(path), listing_(listing_of(file_)), entries_(images_in(listing_.entries)) {}

void ShardImages::count_left_out(data::LeftOut& counts) const {
  std::set<std::string> samples;
  for (const TarEntry& entry : entries_) samples.insert(key_of(entry.path));
  for (const auto& [path, offset, size] : listing_.entries) {
    if (path.ends_with('/')) continue;
    if (data::is_ignored_path(path)) {
      ++counts["hidden"];
    } else if (data::is_unsupported_image(path) || (!image::is_image_path(path) && !samples.contains(key_of(path)))) {
      ++counts[data::kind_of_file(path)];
    }
  }
  if (listing_.symbolic_links > 0) counts["symbolic links"] += listing_.symbolic_links;
  if (listing_.repeated > 0) counts["of a repeated path"] += listing_.repeated;
}

ImageSource ShardImages::source(const Model& model, bool exif) const {
  ImageSource source;
  source.count = entries_.size();
  source.path = [this](size_t i) { return i < entries_.size() ? std::optional(name_of(i)) : std::nullopt; };
  source.read = [this, &model, exif](size_t i) { return model.decode(content(entries_[i]), {.apply_exif = exif}); };
  return source;
}

std::string ShardImages::record(const std::string& name, const std::string& error) const {
  const std::string path = name.substr(file_.path().string().size() + 1);
  const auto entry = std::ranges::lower_bound(entries_, path, {}, &TarEntry::path);
  const auto digest = make_sha256();
  digest->update(content(*entry).data(), entry->size);
  const nlohmann::ordered_json record{{"key", key_of(path)},
                                      {"file", path},
                                      {"size", entry->size},
                                      {"sha256", digest->hex()},
                                      {"status", error.empty() ? "ok" : error}};
  return record.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

bool ShardImages::are_in(const std::filesystem::path& records) const {
  std::ifstream in(records);
  std::string line;
  for (const TarEntry& entry : entries_) {
    std::getline(in, line);
    nlohmann::json record = nlohmann::json::parse(line, nullptr, false);
    if (!record.is_object() || record["file"] != entry.path || record["size"] != entry.size) return false;
  }
  return in.good() && !std::getline(in, line);
}

}  // namespace vitrail::app
