// SPDX-License-Identifier: Apache-2.0
#include "vitrail/weights/checkpoint_params_internal.h"

#include "vitrail/base/callbacks.h"
#include "vitrail/base/error.h"
#include "vitrail/weights/finite_check_internal.h"
#include "vitrail/weights/int8_tensors.h"
#include "vitrail/weights/model_prefixes_internal.h"

namespace vitrail::weights {
namespace {

// "\n  missing (2):\n    a\n    b"; nothing when there are none.
std::string section(const std::string& title, const std::vector<std::string>& lines) {
  if (lines.empty()) return "";
  std::string text = str("\n  ", title, " (", lines.size(), "):");
  for (const std::string& line : lines) text += "\n    " + line;
  return text;
}

// The first element that is not finite.  A quantised tensor has one where a scale is not finite.
std::optional<int64_t> non_finite_element(const Tensor& tensor) {
  const QuantizedTensor* const weight = tensor.quantized();
  if (!weight) return first_non_finite(tensor);
  auto row = first_non_finite(weight->scales);
  if (!row && weight->correction) row = first_non_finite(weight->correction->scales);
  return row ? std::optional(*row * tensor.size(1)) : std::nullopt;
}

}  // namespace

CheckpointParams::CheckpointParams(std::shared_ptr<const Checkpoint> checkpoint, const KeyMap& map, FieldSizes sizes,
                                   DType dtype, Int8Weights int8, Content content)
    : checkpoint_(std::move(checkpoint)),
      family_(map.name()),
      mapped_(*checkpoint_, map, std::move(sizes)),
      dtype_(dtype),
      int8_(int8),
      content_(content) {}

// What a user searches for in the file: its own names, where they differ from the native one.
std::string CheckpointParams::name_of_source(const MappedTensor& tensor, const std::string& native) const {
  const std::string& first = tensor.parts.front().source;
  if (first == native) return native;
  return str(native, " (from ", first, tensor.parts.size() > 1 ? " and others)" : ")");
}

Tensor CheckpointParams::read(const std::string& path, const MappedTensor& mapped) {
  const Tensor tensor = mapped_.read(*checkpoint_, mapped, dtype_);
  std::optional<QuantizedTensor> weight = with_scales(path, tensor);
  if (!weight) return tensor;
  weight->correction = read_correction(path);
  check(*weight);
  return int8_ == Int8Weights::keep ? Tensor::from_quantized(*weight) : dequantize(*weight, dtype_);
}

std::optional<QuantizedTensor> CheckpointParams::with_scales(const std::string& path, const Tensor& values) {
  const auto scales = mapped_.all().find(int8_scale_name(path));
  if (values.dtype() != DType::i8 || scales == mapped_.all().end()) return std::nullopt;
  taken_.insert(scales->first);
  if (!scales->second.problem.empty()) throw Error(scales->second.problem);
  return QuantizedTensor{values, mapped_.read(*checkpoint_, scales->second, DType::f32)};
}

std::shared_ptr<const QuantizedTensor> CheckpointParams::read_correction(const std::string& path) {
  auto found = mapped_.all().find(int8_correction_name(path));
  if (found == mapped_.all().end()) found = mapped_.all().find(old_int8_correction_name(path));
  if (found == mapped_.all().end()) return nullptr;
  taken_.insert(found->first);
  if (!found->second.problem.empty()) throw Error(found->second.problem);
  const auto correction = with_scales(found->first, mapped_.read(*checkpoint_, found->second, dtype_));
  if (!correction) throw Error(found->first, "i8 with " + int8_scale_name(found->first), "neither or one");
  if (!(correction->values.shape() == mapped_.all().at(path).shape)) {
    throw Error(found->first, mapped_.all().at(path).shape.to_string(), correction->values.shape().to_string());
  }
  return std::make_shared<const QuantizedTensor>(*correction);
}

void CheckpointParams::leave_out(const std::string& path) {
  for (const std::string& name : {path, int8_correction_name(path), old_int8_correction_name(path)}) {
    taken_.insert(name);
    taken_.insert(int8_scale_name(name));
  }
}

std::string CheckpointParams::advise_on_gate(const std::string& path, const Shape& expected, const Shape& got) const {
  constexpr std::string_view kSecond = ".mlp.fc2.weight";
  if (!path.ends_with(kSecond)) return "";
  const auto first = mapped_.all().find(path.substr(0, path.size() - kSecond.size()) + ".mlp.fc1.weight");
  return first == mapped_.all().end() ? "" : advise_gate({path, got}, expected, first->second.shape);
}

Tensor CheckpointParams::get(const std::string& path, const Shape& shape, const Initializer&) {
  const Tensor placeholder = Tensor::empty(shape, dtype_, Device::meta);
  taken_.insert(path);
  const auto found = mapped_.all().find(path);
  if (found == mapped_.all().end()) {
    missing_.push_back({path, shape});
    return placeholder;
  }
  const MappedTensor& mapped = found->second;
  const std::string name = name_of_source(mapped, path);
  if (!mapped.problem.empty()) {
    unusable_.push_back(str(name, ": ", mapped.problem));
    return placeholder;
  }
  if (mapped.shape != shape) {
    misshapen_.push_back(str(name, ": expected ", shape, ", got ", mapped.shape));
    if (gate_advice_.empty()) gate_advice_ = advise_on_gate(path, shape, mapped.shape);
    return placeholder;
  }
  if (content_ == Content::shapes) {
    leave_out(path);
    return placeholder;
  }
  Tensor tensor;
  try {
    tensor = read(path, mapped);
  } catch (const Error& error) {
    unusable_.push_back(str(name, ": ", error.what()));
    return placeholder;
  }
  if (!is_floating(tensor.dtype()) && !tensor.quantized()) {
    unusable_.push_back(str(name, ": expected a floating type, got ", vitrail::name_of(tensor.dtype())));
    return placeholder;
  }
  if (const auto at = non_finite_element(tensor)) {
    unusable_.push_back(str(name, ": expected finite numbers, got a NaN or an infinity at element ", *at));
    return placeholder;
  }
  return tensor;
}

void CheckpointParams::finish() {
  std::vector<std::string> extra, beside;
  std::vector<NamedShape> natives, sources;  // what is not expected, and its tensors in the file
  for (const auto& [native, tensor] : mapped_.all()) {
    if (taken_.contains(native) || tensor.object) continue;
    if (checkpoint_->beside(tensor.parts.front().source)) {
      beside.push_back(tensor.parts.front().source);
      continue;
    }
    extra.push_back(str(name_of_source(tensor, native), tensor.problem.empty() ? str(" ", tensor.shape) : ""));
    natives.push_back({native, tensor.shape});
    for (const MappedPart& part : tensor.parts) {
      sources.push_back({part.source, checkpoint_->info(part.source).shape});
    }
  }
  const std::string report = section("missing", describe_missing(missing_, sources)) +
                             section("misshapen", misshapen_) + section("unusable", unusable_) +
                             section("not expected", extra);
  if (!beside.empty()) {
    warn(str(checkpoint_->path(), ": left out ", beside.size(), beside.size() == 1 ? " tensor" : " tensors",
             " beside the model's: ", quoted_list(beside)));
  }
  if (report.empty()) return;
  std::vector<std::string> fields = advise_fields(natives, taken_);
  if (!gate_advice_.empty()) fields.push_back(gate_advice_);
  std::vector<std::string> names;
  for (const NamedShape& source : sources) names.push_back(source.name);
  throw Error(str(checkpoint_->path(), ": the tensors do not fit the model (key map ", family_, "):", report,
                  section("fields of model_args that explain them", fields),
                  section("weights in parts, to be merged before saving", advise_merging(names, !missing_.empty()))));
}

}  // namespace vitrail::weights
