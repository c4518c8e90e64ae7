// SPDX-License-Identifier: Apache-2.0
#pragma once
// A checkpoint seen through a key map: which of its tensors make up each native one.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "vitrail/weights/checkpoint.h"
#include "vitrail/weights/key_map.h"

namespace vitrail::weights {

// Configuration fields by name, for the "sizes" of rules: patch_size, num_heads, in_chans, embed_dim, head_dim, …
using FieldSizes = std::map<std::string, int64_t>;

// One tensor of the file that is, or is a part of, a native tensor.
struct MappedPart {
  std::string source;             // its name in the file
  const KeyRule* rule = nullptr;  // null: it keeps its name and its form
  int64_t part = 0;
};

// A native tensor: its parts in order, and the shape they make together.  `problem` says, for a user, why it cannot be
// made (a part is missing, a shape does not fit the rule's pattern); empty when all is well.
struct MappedTensor {
  std::vector<MappedPart> parts;
  Shape shape;
  std::string problem;
};

// Native key → what it is made of.  Only shapes are looked at.  Throws Error when two tensors of the file claim the
// same native key.  Tensors without elements (vit-pytorch's class token when it pools the mean) are left out.
class MappedTensors {
 public:
  MappedTensors(const Checkpoint& checkpoint, const KeyMap& map, FieldSizes sizes);

  const std::map<std::string, MappedTensor>& all() const { return tensors_; }
  // Reads, rearranges and joins.  Contiguous; floating types become `dtype`, others stay; a view of the file when
  // nothing needs to be done.  `tensor.problem` must be empty.
  Tensor read(const Checkpoint& checkpoint, const MappedTensor& tensor, DType dtype) const;

 private:
  std::map<std::string, int64_t> axis_sizes(const KeyRule& rule) const;
  void settle(const Checkpoint& checkpoint, MappedTensor& tensor) const;
  void settle_shape(const Checkpoint& checkpoint, MappedTensor& tensor) const;
  Shape part_shape(const Checkpoint& checkpoint, const MappedPart& part) const;

  KeyMap map_;  // the rules that parts point to
  FieldSizes sizes_;
  std::map<std::string, MappedTensor> tensors_;
};

// Native key → shape, so that a configuration can be read off a checkpoint before a model is built.  Throws Error for a
// tensor with a problem.
std::map<std::string, Shape> mapped_shapes(const Checkpoint& checkpoint, const KeyMap& map, const FieldSizes& sizes);

}  // namespace vitrail::weights
