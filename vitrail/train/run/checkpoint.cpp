// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/run/checkpoint.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "vitrail/base/atomic_file.h"
#include "vitrail/base/callbacks.h"
#include "vitrail/base/crc32c_internal.h"
#include "vitrail/base/error.h"
#include "vitrail/base/mapped_file_internal.h"
#include "vitrail/kernels/isa/isa.h"
#include "vitrail/models/json_fields_internal.h"
#include "vitrail/train/recipe/checked_json_internal.h"
#include "vitrail/train/recipe/recipe.h"
#include "vitrail/train/run/checkpoint_internal.h"
#include "vitrail/weights/safetensors.h"

namespace vitrail::train {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::ordered_json;
using Named = std::vector<std::pair<std::string, Tensor>>;
using Metadata = std::map<std::string, std::string>;

constexpr const char* kFormat = "vitrail training checkpoint 1";
// Bounds of the values in a file.  They keep products such as epoch · batches within 64 bits.
constexpr int64_t kMaxBatches = int64_t{1} << 40, kMaxBatchImages = int64_t{1} << 22;
constexpr int64_t kMaxWorkers = 1'000'000;
constexpr const char* kGroups[] = {"model/", "optimizer/", "average/"};

// CRC-32C over the name, dtype, shape and bytes of each tensor in the order of names, then over the metadata except the
// checksum itself.
std::string checksum(Named tensors, const Metadata& metadata) {
  std::sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  uint32_t crc = 0;
  auto add = [&](const std::string& text) { crc = crc32c(text.data(), text.size() + 1, crc); };
  for (const auto& [name, tensor] : tensors) {
    add(name);
    add(str(name_of(tensor.dtype()), tensor.shape()));
    const Tensor dense = tensor.contiguous();
    if (dense.numel() > 0) crc = crc32c(dense.raw(), static_cast<size_t>(dense.numel()) * size_of(dense.dtype()), crc);
  }
  for (const auto& [key, value] : metadata) {
    if (key == "checksum") continue;
    add(key);
    add(value);
  }
  return str(crc);
}

void check_checksum(const std::string& where, const Named& tensors, const Metadata& metadata) {
  const auto expected = metadata.find("checksum");
  const std::string found = checksum(tensors, metadata);
  if (expected != metadata.end() && expected->second == found) return;
  throw Error(where, str("the checksum ", expected == metadata.end() ? "in its metadata" : expected->second),
              found + ": the file is damaged");
}

Json json_of(const std::vector<ImageSet>& sets) {
  Json json = Json::array();
  for (const ImageSet& set : sets)
    json.push_back({{"name", set.name}, {"images", set.images}, {"checksum", set.checksum}});
  return json;
}

std::vector<ImageSet> image_sets_of(const Json& json) {
  std::vector<ImageSet> sets;
  for (const Json& entry : json) {
    const CheckedObject set(entry, "image_sets");
    sets.push_back({set.text("name"), set.count("images"), static_cast<uint32_t>(set.count("checksum", UINT32_MAX))});
  }
  return sets;
}

Metadata metadata_of(const CheckpointState& state) {
  const Position& position = state.position;
  const Fingerprint& print = state.fingerprint;
  return {
      {"format", kFormat},
      {"position", Json{{"epoch", position.epoch},
                        {"step_in_epoch", position.step_in_epoch},
                        {"step", position.step},
                        {"batch_images", position.batch_images}}
                       .dump()},
      {"recipe", state.recipe},
      {"counters", state.counters},
      {"class_names", Json(state.class_names).dump()},
      {"image_sets", json_of(state.image_sets).dump()},
      {"preprocessing", state.preprocessing},
      {"fingerprint",
       Json{{"build", print.build}, {"isa", print.isa}, {"threads", print.threads}, {"ranks", print.ranks}}.dump()}};
}

void read_metadata(const Metadata& metadata, CheckpointState& state) {
  const Json position = models::parse_json(metadata.at("position"), "position");
  const Json print = models::parse_json(metadata.at("fingerprint"), "fingerprint");
  const CheckedObject at(position, "position"), of(print, "fingerprint");
  state.position = {at.count("epoch", kMaxEpochs), at.count("step_in_epoch", kMaxBatches), at.count("step"), 0};
  if (position.contains("batch_images")) state.position.batch_images = at.count("batch_images", kMaxBatchImages);
  state.recipe = metadata.at("recipe");
  state.counters = metadata.at("counters");
  if (const auto names = metadata.find("class_names"); names != metadata.end())
    state.class_names = models::parse_json(names->second, "class_names").get<std::vector<std::string>>();
  if (const auto sets = metadata.find("image_sets"); sets != metadata.end())
    state.image_sets = image_sets_of(models::parse_json(sets->second, "image_sets"));
  if (const auto text = metadata.find("preprocessing"); text != metadata.end()) state.preprocessing = text->second;
  state.fingerprint = {of.text("build"), of.text("isa"), static_cast<int>(of.count("threads", kMaxWorkers, 1)),
                       static_cast<int>(of.count("ranks", kMaxWorkers, 1))};
}

fs::path next_name(const fs::path& path) { return path.string() + ".next"; }
fs::path link_name(const fs::path& path) { return path.string() + ".link"; }

// Atomically replaces `to` by a hard link to `file`, or by a copy on file systems without hard links.
void replace_by_link(const fs::path& file, const fs::path& to) {
  const fs::path temporary = link_name(to);
  std::error_code error;
  fs::remove(temporary, error);
  fs::create_hard_link(file, temporary, error);
  if (error) fs::copy_file(file, temporary, fs::copy_options::overwrite_existing, error);
  if (!error) fs::rename(temporary, to, error);
  if (error) throw Error(str(to.string(), ": cannot be replaced: ", error.message()));
}

// The size and checksum of this program's file.  Without /proc, builds cannot be distinguished.
std::string program_checksum() {
  try {
    const MappedFile program("/proc/self/exe");
    return str(program.bytes().size(), "-", crc32c(program.bytes().data(), program.bytes().size()));
  } catch (const Error&) {
    return "unknown";
  }
}

}  // namespace

Fingerprint fingerprint(int threads, int ranks) {
  static const std::string build = program_checksum();  // once, because each checkpoint has it
  return {build, kernels::name_of(kernels::active_isa()), threads, ranks};
}

std::vector<std::string> differences(const Fingerprint& before, const Fingerprint& now) {
  std::vector<std::string> lines;
  auto compare = [&](const char* what, const auto& was, const auto& is) {
    if (was != is) lines.push_back(str(what, ": ", was, " → ", is));
  };
  compare("build", before.build, now.build);
  compare("instruction set", before.isa, now.isa);
  compare("threads", before.threads, now.threads);
  compare("processes", before.ranks, now.ranks);
  return lines;
}

fs::path previous_checkpoint(const fs::path& path) {
  return path.parent_path() / ("previous" + path.extension().string());
}

std::vector<fs::path> temporary_checkpoints(const fs::path& path) {
  return {next_name(path), link_name(previous_checkpoint(path))};
}

void save_checkpoint(const fs::path& path, const CheckpointState& state) {
  Named tensors;
  const std::vector<nn::NamedTensor>* groups[] = {&state.model, &state.optimizer, &state.average};
  for (size_t g = 0; g < 3; ++g) {
    for (const nn::NamedTensor& tensor : *groups[g]) tensors.emplace_back(kGroups[g] + tensor.name, tensor.tensor);
  }
  Metadata metadata = metadata_of(state);
  metadata["checksum"] = checksum(tensors, metadata);
  // The new file is complete on disk before the old one is replaced.
  const fs::path next = next_name(path);
  try {
    weights::write_safetensors(next, tensors, metadata);
    std::error_code unknown;
    if (fs::exists(path, unknown)) replace_by_link(path, previous_checkpoint(path));
  } catch (const Error&) {
    std::error_code ignored;
    fs::remove(next, ignored);
    throw;
  }
  std::error_code error;
  fs::rename(next, path, error);
  if (error) throw Error(str(path.string(), ": cannot be replaced: ", error.message()));
  sync_folder(path.parent_path());
}

CheckpointState load_checkpoint(const fs::path& path) {
  return read_checkpoint(weights::Checkpoint::open(path), Checksum::verify);
}

CheckpointState read_checkpoint(const weights::Checkpoint& file, Checksum policy) {
  const Metadata& metadata = file.metadata();
  const auto format = metadata.find("format");
  if (format == metadata.end() || format->second != kFormat)
    throw Error(file.path(), kFormat, format == metadata.end() ? "another file" : format->second);
  CheckpointState state;
  std::vector<nn::NamedTensor>* groups[] = {&state.model, &state.optimizer, &state.average};
  Named tensors;
  for (const std::string& name : file.names()) {
    tensors.emplace_back(name, file.tensor(name));
    for (size_t g = 0; g < 3; ++g) {
      const std::string prefix = kGroups[g];
      if (name.starts_with(prefix)) groups[g]->push_back({name.substr(prefix.size()), tensors.back().second});
    }
  }
  if (policy == Checksum::verify) check_checksum(file.path(), tensors, metadata);
  try {
    read_metadata(metadata, state);
  } catch (const nlohmann::json::exception&) {
    throw Error(file.path(), "a checkpoint's position and fingerprint", "values of other types, or not all of them");
  } catch (const std::exception& error) {
    throw Error(file.path(), "a checkpoint's position and fingerprint", error.what());
  }
  return state;
}

CheckpointState load_latest(const fs::path& path) {
  std::string failure;
  try {
    return load_checkpoint(path);
  } catch (const Error& error) {
    failure = error.what();
  }
  const fs::path previous = previous_checkpoint(path);
  std::error_code unknown;
  if (!fs::exists(previous, unknown)) throw Error(failure);
  try {
    CheckpointState state = load_checkpoint(previous);
    warn(str("the last checkpoint cannot be read, resuming from the previous one (", previous.string(), ", step ",
             state.position.step, "): ", failure));
    return state;
  } catch (const Error& error) {
    throw Error(str(failure, "; the previous checkpoint cannot be read either: ", error.what()));
  }
}

}  // namespace vitrail::train
