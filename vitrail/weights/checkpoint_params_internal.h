// SPDX-License-Identifier: Apache-2.0
#pragma once
// Parameters answered by a weights file.
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "vitrail/tensor/param_source.h"
#include "vitrail/tensor/quantized_tensor.h"
#include "vitrail/weights/int8_tensors.h"
#include "vitrail/weights/mapped_tensors_internal.h"
#include "vitrail/weights/tensor_advice_internal.h"

namespace vitrail::weights {

// Hands out a checkpoint's tensors under their native names, as `dtype`: floating types are converted where they
// differ, and are views of the file otherwise.
//
// Every problem (a key that is missing, misshapen, of an integer type, or unexpected; a part that is missing; a NaN or
// infinity) is noted, and finish() reports all of them in one Error.  Until then get() returns a meta tensor of the
// wanted shape.
//
// The search for NaN and infinity is one pass over each tensor as it is handed out (first_non_finite); it brings the
// pages into memory that packing reads next.
class CheckpointParams : public ParamProvider {
 public:
  // What get() gives: the values, or meta tensors after the checks of names and shapes, without reading any value.
  enum class Content { values, shapes };
  // `sizes`: see FieldSizes.
  CheckpointParams(std::shared_ptr<const Checkpoint> checkpoint, const KeyMap& map, FieldSizes sizes = {},
                   DType dtype = DType::f32, Int8Weights int8 = Int8Weights::dequantize,
                   Content content = Content::values);

  Tensor get(const std::string& path, const Shape& shape, const Initializer& init) override;
  bool has(const std::string& path) const override { return mapped_.all().contains(path); }
  void finish() override;
  // Expects a tensor, with its int8 scales and correction if it has them, without reading it.
  void leave_out(const std::string& path);

 private:
  Tensor read(const std::string& path, const MappedTensor& mapped);
  // values with the scales beside them; nothing where the file has no scales.
  std::optional<QuantizedTensor> with_scales(const std::string& path, const Tensor& values);
  std::shared_ptr<const QuantizedTensor> read_correction(const std::string& path);  // null where there is none
  std::string advise_on_gate(const std::string& path, const Shape& expected, const Shape& got) const;
  std::string name_of_source(const MappedTensor& tensor, const std::string& native) const;

  std::shared_ptr<const Checkpoint> checkpoint_;
  std::string family_;
  MappedTensors mapped_;
  DType dtype_;
  Int8Weights int8_;
  Content content_;
  std::set<std::string> taken_;
  std::vector<NamedShape> missing_;
  std::vector<std::string> misshapen_, unusable_;
  std::string gate_advice_;
};

}  // namespace vitrail::weights
