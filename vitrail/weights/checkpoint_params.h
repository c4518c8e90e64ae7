#pragma once
// Parameters answered by a weights file.
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "vitrail/tensor/param_source.h"
#include "vitrail/weights/mapped_tensors.h"

namespace vitrail::weights {

// Hands out a checkpoint's tensors under their native names, as `dtype` (floating types are converted where they
// differ, views of the file otherwise; weights in 8 bits are multiplied by their scales, see int8_tensors.h).
//
// Every problem (a key that is missing, misshapen, of an integer type, or that nobody asked for; a part that is
// missing; a NaN or infinity) is noted, and finish() reports all of them in one Error.  Until then get() answers with a
// meta tensor of the wanted shape.
//
// The search for NaN and infinity is one pass over each tensor as it is handed out (first_non_finite); it brings the
// pages into memory that packing reads next.
class CheckpointParams : public ParamProvider {
 public:
  // `sizes`: see FieldSizes.
  CheckpointParams(std::shared_ptr<const Checkpoint> checkpoint, const KeyMap& map, FieldSizes sizes = {},
                   DType dtype = DType::f32);

  Tensor get(const std::string& path, const Shape& shape, const Initializer& init) override;
  bool has(const std::string& path) const override { return mapped_.all().contains(path); }
  void finish() override;

 private:
  Tensor read(const std::string& path, const MappedTensor& mapped);
  std::string name_of_source(const MappedTensor& tensor, const std::string& native) const;

  std::shared_ptr<const Checkpoint> checkpoint_;
  std::string family_;
  MappedTensors mapped_;
  DType dtype_;
  std::set<std::string> taken_;
  std::vector<std::string> missing_, misshapen_, unusable_;
};

}  // namespace vitrail::weights
