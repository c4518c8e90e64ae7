// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/input/companions.h"

#include <fstream>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "vitrail/base/error.h"

namespace vitrail::app {
namespace {

namespace fs = std::filesystem;

// The start of a file, which is longer than a record.  None without such a file: another run may be replacing it.  The
// files are outputs, which the functions of vitrail/base/read_file.h refuse to read.
std::optional<std::string> start_of(const fs::path& file) {
  constexpr std::streamsize kMaxBytes = 4'000'000;
  std::error_code unknown;
  if (!fs::is_regular_file(file, unknown)) return std::nullopt;
  std::ifstream in(file, std::ios::binary);
  if (!in && !fs::exists(file, unknown)) return std::nullopt;
  if (!in) throw Error(file.string(), "a file that can be read before it is replaced", "one that cannot");
  std::string text(kMaxBytes, '\0');
  in.read(text.data(), kMaxBytes);
  text.resize(static_cast<size_t>(in.gcount()));
  return text;
}

bool has_keys(const std::string& json, std::initializer_list<const char*> keys) {
  const nlohmann::json object = nlohmann::json::parse(json, nullptr, false);
  for (const char* key : keys) {
    if (!object.is_object() || !object.contains(key)) return false;
  }
  return true;
}

bool is_embedding_record(const std::string& text) { return has_keys(text, {"model", "tokens", "layers", "probe"}); }

}  // namespace

void check_companions(const fs::path& array, const fs::path& list, const fs::path& record) {
  // The list before the array, because runs replace the array first.
  const auto names = start_of(list), model = start_of(record);
  if (model && !model->empty() && !is_embedding_record(*model))
    throw Error(record.string(), "no file, or the record of the model that belongs to " + array.string(),
                "another file");
  std::error_code unknown;
  const bool has_owner = fs::exists(array, unknown) || (model && !model->empty());
  if (names && !names->empty() && !has_owner)
    throw Error(list.string(), "no file, or the image paths that belong to " + array.string(), "another file");
}

void check_shard_list(const fs::path& array, const fs::path& list) {
  const auto text = start_of(list);
  std::error_code unknown;
  if (!text || text->empty() || fs::exists(array, unknown)) return;
  if (!has_keys(text->substr(0, text->find('\n')), {"key", "file", "sha256", "status"}))
    throw Error(list.string(), "no file, or the records of a shard's images", "another file");
}

}  // namespace vitrail::app
