// SPDX-License-Identifier: Apache-2.0
#include "vitrail/weights/checkpoint.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "vitrail/base/callbacks.h"
#include "vitrail/base/error.h"
#include "vitrail/weights/foreign_formats_internal.h"
#include "vitrail/weights/model_prefixes_internal.h"
#include "vitrail/weights/npz_internal.h"
#include "vitrail/weights/pytorch/torch_file_internal.h"
#include "vitrail/weights/safetensors.h"
#include "vitrail/weights/stacked_layers_internal.h"
#include "vitrail/weights/wrapper_prefixes_internal.h"

namespace vitrail::weights {
namespace {

std::unique_ptr<TensorFile> open_file(const FileBytes& bytes, size_t state_dict) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data.data()), bytes.data.size());
  if (text.empty()) throw Error(bytes.where, "a weights file", "an empty file");
  if (text.size() > 8 && text[8] == '{' && !text.starts_with("GGUF")) return open_safetensors(bytes);
  if (bytes.where.ends_with(".distcp")) {  // several archives one after another, each of one tensor
    throw Error(bytes.where, "a safetensors file, a PyTorch archive or an .npz", foreign_file({}, bytes.where));
  }
  if (text.starts_with("PK")) {
    ZipReader zip(bytes.data, bytes.where);
    if (is_torch_zip(zip)) return open_torch_zip(bytes, std::move(zip), state_dict);
    if (is_npz(zip)) return open_npz(bytes, std::move(zip));
    const std::string foreign = foreign_file({}, bytes.where);  // by name: .keras, .pt2
    throw Error(bytes.where, "a PyTorch archive or an .npz",
                foreign.empty() ? "a zip archive with neither data.pkl nor .npy files" : foreign);
  }
  if (is_torch_legacy(text)) return open_torch_legacy(bytes, state_dict);
  if (text.starts_with("version https://git-lfs")) {
    throw Error(bytes.where, "a weights file", "a Git LFS pointer: fetch the file itself with `git lfs pull`");
  }
  if (const std::string foreign = foreign_file(text, bytes.where); !foreign.empty()) {
    throw Error(bytes.where, "a safetensors file, a PyTorch archive or an .npz", foreign);
  }
  throw Error(bytes.where, "a safetensors file, a PyTorch archive or an .npz",
              str("an unknown format or a damaged file (", text.size(), " bytes)"));
}

std::map<std::string, std::string> without_inner_wrappers(const std::map<std::string, std::string>& objects) {
  std::map<std::string, std::string> result;
  for (const auto& [name, global] : objects) result.emplace(weights::without_inner_wrappers(name), global);
  return result;
}

// strip_inner_wrappers() for the names that are not among `others`.
size_t strip_inner_wrappers_but(const std::set<std::string>& others, std::vector<std::string>& names) {
  std::vector<std::string> own;
  for (const std::string& name : names) {
    if (!others.contains(name)) own.push_back(name);
  }
  const size_t count = strip_inner_wrappers(own);
  auto next = own.begin();
  for (std::string& name : names) {
    if (!others.contains(name)) name = *next++;
  }
  return count;
}

// What is before "n_averaged" in the names of averages that have not begun: "ema.".
std::vector<std::string> find_empty_averages(const Checkpoint& checkpoint) {
  std::vector<std::string> averages;
  for (const TensorInfo& info : checkpoint.tensors()) {
    if (!info.name.ends_with(kAveragedCount)) continue;
    const std::string prefix = info.name.substr(0, info.name.size() - kAveragedCount.size());
    if ((!prefix.ends_with('.') && !prefix.ends_with('/')) || info.shape.numel() != 1) continue;
    if (is_zero_count([&] { return checkpoint.tensor(info.name); })) averages.push_back(prefix);
  }
  return averages;
}

// The prefixes of models in the order of use; the last ones are those of averages that have not begun.
struct OrderedPrefixes {
  std::vector<std::string> all, empty_averages;
};

OrderedPrefixes find_ordered_prefixes(const Checkpoint& checkpoint) {
  const std::vector<std::string> averages = find_empty_averages(checkpoint);
  OrderedPrefixes result;
  for (const std::string& prefix : find_model_prefixes(checkpoint.names())) {
    const bool last = std::ranges::any_of(averages, [&](const std::string& a) { return prefix.starts_with(a); });
    (last ? result.empty_averages : result.all).push_back(prefix);
  }
  result.all.insert(result.all.end(), result.empty_averages.begin(), result.empty_averages.end());
  return result;
}

}  // namespace

Checkpoint Checkpoint::open(const std::filesystem::path& file) { return open(FileBytes::map(file)); }

Checkpoint Checkpoint::open(const FileBytes& bytes) {
  Checkpoint checkpoint;
  checkpoint.path_ = bytes.where;
  checkpoint.add(bytes);
  checkpoint.index();
  return checkpoint;
}

Checkpoint Checkpoint::open(const std::vector<std::filesystem::path>& shards, size_t state_dict) {
  if (shards.empty()) throw Error("checkpoint", "at least one file", "none");
  Checkpoint checkpoint;
  checkpoint.path_ = shards.front().string();
  for (const auto& shard : shards) checkpoint.add(FileBytes::map(shard), state_dict);
  checkpoint.index();
  return checkpoint;
}

void Checkpoint::add(const FileBytes& bytes, size_t state_dict) {
  files_.push_back(unstack_layers(open_file(bytes, state_dict), bytes.where));
  const auto& tensors = files_.back()->tensors();
  tensors_.insert(tensors_.end(), tensors.begin(), tensors.end());
}

void Checkpoint::index() {
  std::vector<std::string> names = this->names();
  size_t i = 0;
  for (size_t file = 0; file < files_.size(); ++file) {
    for (size_t index = 0; index < files_[file]->tensors().size(); ++index, ++i) {
      if (!locations_.emplace(names[i], Location{file, index}).second) throw_repeated(names[i]);
    }
  }
  const std::string first = names.empty() ? "" : names.front();
  strip_wrapper_prefixes(names);
  const std::string stripped = names.empty() ? "" : first.substr(0, first.size() - names.front().size());
  rename(names);
  for (const auto& file : files_) {
    for (const auto& [name, global] : file->objects()) {
      objects_.emplace(name.starts_with(stripped) ? name.substr(stripped.size()) : name, global);
    }
  }
}

void Checkpoint::throw_repeated(const std::string& name) const {
  throw Error(path_, "each tensor once", str("\"", name, "\" twice"));
}

void Checkpoint::rename(const std::vector<std::string>& names) {
  std::unordered_map<std::string, Location> locations;
  std::vector<TensorInfo> tensors;
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i].empty() && !tensors_[i].name.empty()) continue;
    if (!locations.emplace(names[i], location(tensors_[i].name)).second) throw_repeated(names[i]);
    tensors.push_back(tensors_[i]);
    tensors.back().name = names[i];
  }
  locations_ = std::move(locations);
  tensors_ = std::move(tensors);
}

std::vector<std::string> Checkpoint::strip_model_prefix(size_t choice) {
  const auto strip_wrappers = [&] {
    std::vector<std::string> names = this->names();
    const size_t count = strip_inner_wrappers_but(beside_, names);
    if (count == 0) return;
    rename(names);
    objects_ = without_inner_wrappers(objects_);
    warn(str(path_, ": removed the names of wrappers (\"_orig_mod.\" and the like) from the names of ", count,
             count == 1 ? " tensor" : " tensors"));
  };
  OrderedPrefixes found = find_ordered_prefixes(*this);
  if (found.all.empty()) {
    strip_wrappers();  // they may be in the names that show the family
    found = find_ordered_prefixes(*this);
  }
  const std::vector<std::string>& prefixes = found.all;
  std::vector<std::string> names = this->names();
  const std::string prefix = choice < prefixes.size() ? prefixes[choice] : "";
  if (prefix.empty()) {
    for (const std::string& name : names) {
      if (is_optimizer_state(name.substr(0, name.find_last_of("./") + 1))) beside_.insert(name);
    }
    strip_wrappers();
    return prefixes;
  }
  for (std::string& name : names) {
    if (name.starts_with(prefix)) {
      name.erase(0, prefix.size());
    } else if (has(prefix + name)) {
      name.clear();
    } else {
      beside_.insert(name);
    }
  }
  rename(names);
  std::map<std::string, std::string> objects;
  for (const auto& [name, global] : objects_) {
    if (name.starts_with(prefix)) objects.emplace(name.substr(prefix.size()), global);
  }
  objects_ = std::move(objects);
  std::vector<std::string> others = prefixes;
  std::erase(others, prefix);
  if (!others.empty()) {
    warn(str(path_, ": uses the weights under ", quoted_list({prefix}), "; the file also has weights under ",
             quoted_list(others), empty_averages_text(found.empty_averages)));
  }
  strip_wrappers();
  return prefixes;
}

const std::string& Checkpoint::format() const { return files_.front()->format(); }

std::vector<std::string> Checkpoint::state_dicts() const {
  return files_.size() == 1 ? files_.front()->state_dicts() : std::vector<std::string>();
}

const std::map<std::string, std::string>& Checkpoint::metadata() const { return files_.front()->metadata(); }

std::vector<std::string> Checkpoint::names() const {
  std::vector<std::string> names;
  for (const TensorInfo& info : tensors_) names.push_back(info.name);
  return names;
}

const Checkpoint::Location& Checkpoint::location(const std::string& name) const {
  const auto found = locations_.find(name);
  if (found == locations_.end()) throw Error(path_, "a tensor called \"" + name + "\"", "none of that name");
  return found->second;
}

const TensorInfo& Checkpoint::info(const std::string& name) const {
  const Location& found = location(name);
  return files_[found.file]->tensors()[found.index];
}

Tensor Checkpoint::tensor(const std::string& name) const {
  const Location& found = location(name);
  return files_[found.file]->tensor(found.index);
}

}  // namespace vitrail::weights
