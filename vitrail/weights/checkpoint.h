// SPDX-License-Identifier: Apache-2.0
#pragma once
// A checkpoint: named tensors of a safetensors, PyTorch or NumPy file.
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "vitrail/weights/file_bytes.h"
#include "vitrail/weights/tensor_file.h"

namespace vitrail::weights {

// Opening reads only the index; tensors are read on request, from the mapped file if the format allows it.  Prefixes of
// training scripts ("module.", "_orig_mod.", "model.", "backbone.") are removed from the names if
// all have them.
// Immutable after opening and strip_model_prefix(); tensor() is thread-safe.
class Checkpoint {
 public:
  // The content determines the format, not the file name.  Throws Error naming the path for a file that is missing, of
  // an unknown format, truncated or damaged.
  static Checkpoint open(const std::filesystem::path& file);
  static Checkpoint open(const FileBytes& bytes);
  // Shards of one checkpoint.  Throws Error if a name is in two of them.  state_dict: the index of one of
  // state_dicts(), whose order is that of use.
  static Checkpoint open(const std::vector<std::filesystem::path>& shards, size_t state_dict = 0);

  const std::string& path() const { return path_; }  // the first file's path
  const std::string& format() const;                 // "safetensors", "pytorch zip", "pytorch legacy", "npz"
  const std::vector<TensorInfo>& tensors() const { return tensors_; }
  std::vector<std::string> names() const;
  bool has(const std::string& name) const { return locations_.contains(name); }
  const TensorInfo& info(const std::string& name) const;  // throws Error if there is no such tensor
  // A view of the mapped file if its alignment allows, else a copy.  Throws Error if there is no such tensor or its
  // element type is not supported.
  Tensor tensor(const std::string& name) const;
  const std::map<std::string, std::string>& metadata() const;  // the first file's metadata

  // Removes wrappers inside names ("blocks.0._orig_mod."), with a warning, and the prefix under which the keys of a
  // built-in family are ("net.").  Other tensors stay, and beside() is true for them (without a prefix, for optimisers'
  // moments); one that would have the name of a tensor of the model is removed.  Of several prefixes, the one at index
  // `choice` is used, and a warning names it; averages are first (last if they have not begun: "n_averaged" is 0), and
  // optimisers' moments none of them.  Returns all prefixes.
  std::vector<std::string> strip_model_prefix(size_t choice = 0);
  bool beside(const std::string& name) const { return beside_.contains(name); }
  // Names whose value in a PyTorch file is no tensor but a Python object, with the object's class or function.
  const std::map<std::string, std::string>& objects() const { return objects_; }
  // Keys of a PyTorch file that lead to state dicts with the names of a built-in family; empty for shards.
  std::vector<std::string> state_dicts() const;

 private:
  struct Location {
    size_t file, index;
  };
  const Location& location(const std::string& name) const;
  void add(const FileBytes& bytes, size_t state_dict = 0);
  void index();
  [[noreturn]] void throw_repeated(const std::string& name) const;
  void rename(const std::vector<std::string>& names);  // one per tensor; "": remove it

  std::string path_;
  std::vector<std::shared_ptr<const TensorFile>> files_;
  std::vector<TensorInfo> tensors_;
  std::unordered_map<std::string, Location> locations_;
  std::map<std::string, std::string> objects_;
  std::set<std::string> beside_;
};

}  // namespace vitrail::weights
