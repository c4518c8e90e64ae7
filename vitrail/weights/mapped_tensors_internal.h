// SPDX-License-Identifier: Apache-2.0
#pragma once
// A checkpoint under a key map: the native tensors and the source tensors that each is made of.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "vitrail/weights/checkpoint.h"
#include "vitrail/weights/key_map.h"

namespace vitrail::weights {

// Configuration fields by name, for the "sizes" of rules: patch_size, num_heads, in_chans, embed_dim, head_dim, …
using FieldSizes = std::map<std::string, int64_t>;

// A tensor of the file that is a native tensor or a part of one.
struct MappedPart {
  std::string source;             // its name in the file
  const KeyRule* rule = nullptr;  // null: name and layout are native
  int64_t part = 0;
};

// A native tensor: its parts in order and its shape.  `problem` is a message for the user if it cannot be made (a part
// is missing, a shape does not fit the rule's pattern), else empty.
struct MappedTensor {
  std::vector<MappedPart> parts;
  Shape shape;
  std::string problem;
  bool object = false;  // the file has a Python object instead of a tensor
};

// The native tensors by name.  The constructor reads only shapes.  It throws Error if two tensors of the file map to
// the same native name.  Tensors without elements are ignored (vit-pytorch has an empty class token with mean pooling).
class MappedTensors {
 public:
  MappedTensors(const Checkpoint& checkpoint, const KeyMap& map, FieldSizes sizes);

  const std::map<std::string, MappedTensor>& all() const { return tensors_; }
  // Reads, rearranges and concatenates the parts.  Contiguous; floating types are converted to `dtype`, others are
  // kept; a view of the file if no change is needed.  `tensor.problem` must be empty.
  Tensor read(const Checkpoint& checkpoint, const MappedTensor& tensor, DType dtype) const;
  // The inverse: writes the values of a native tensor to the source tensors that it is made of.  Those that `sources`
  // does not have yet begin as f32 copies of the file's.  Throws Error for a rearrangement that is no view.
  void write(const Checkpoint& checkpoint, const MappedTensor& tensor, const Tensor& native,
             std::map<std::string, Tensor>& sources) const;

 private:
  Tensor part_in(Tensor source, const MappedPart& part) const;  // a view of the source, unless its rule needs a copy
  std::map<std::string, int64_t> axis_sizes(const KeyRule& rule) const;
  void add(const Checkpoint& checkpoint, const std::string& source, const KeyMatch& match);
  void resolve(const Checkpoint& checkpoint, MappedTensor& tensor) const;
  void resolve_shape(const Checkpoint& checkpoint, MappedTensor& tensor) const;
  Shape part_shape(const Checkpoint& checkpoint, const MappedPart& part) const;

  KeyMap map_;  // owns the rules that parts point to
  FieldSizes sizes_;
  std::map<std::string, MappedTensor> tensors_;
};

}  // namespace vitrail::weights
