// SPDX-License-Identifier: Apache-2.0
#include "vitrail/weights/mapped_tensors_internal.h"

#include <algorithm>

#include "vitrail/base/error.h"

namespace vitrail::weights {
namespace {

int64_t parts_of(const MappedPart& part) { return part.rule == nullptr ? 1 : part.rule->parts; }

// Sorts the parts and checks that all are present.  A tensor without parts is part 0 of 1.
std::string check_parts(MappedTensor& tensor) {
  std::sort(tensor.parts.begin(), tensor.parts.end(),
            [](const MappedPart& a, const MappedPart& b) { return a.part < b.part; });
  const int64_t wanted = parts_of(tensor.parts.front());
  for (int64_t i = 0; i < wanted; ++i) {
    if (i >= static_cast<int64_t>(tensor.parts.size()) || tensor.parts[i].part != i) {
      return str("part ", i + 1, " of ", wanted, " is missing");
    }
  }
  return "";
}

}  // namespace

MappedTensors::MappedTensors(const Checkpoint& checkpoint, const KeyMap& map, FieldSizes sizes)
    : map_(map), sizes_(std::move(sizes)) {
  for (const TensorInfo& info : checkpoint.tensors()) {
    if (info.shape.numel() == 0) continue;
    for (const KeyMatch& match : map_.match_all(info.name)) {
      if (!match.dropped()) add(checkpoint, info.name, match);
    }
  }
  for (auto& [native, tensor] : tensors_) resolve(checkpoint, tensor);
  for (const auto& [name, global] : checkpoint.objects()) {
    const KeyMatch match = map_.match(name);
    if (match.dropped()) continue;
    tensors_.emplace(match.native, MappedTensor{.parts = {{name, match.rule, 0}},
                                                .shape = {},
                                                .problem = "expected a tensor, got an object of " + global,
                                                .object = true});
  }
}

void MappedTensors::add(const Checkpoint& checkpoint, const std::string& source, const KeyMatch& match) {
  MappedTensor& tensor = tensors_[match.native];
  const MappedPart part{source, match.rule, match.rule == nullptr ? 0 : match.rule->part};
  for (const MappedPart& other : tensor.parts) {
    if (other.part != part.part && parts_of(other) == parts_of(part)) continue;
    throw Error(checkpoint.path(), str("one tensor for ", match.native, " (key map ", map_.name(), ")"),
                str("two: ", other.source, " and ", part.source));
  }
  tensor.parts.push_back(part);
}

void MappedTensors::resolve(const Checkpoint& checkpoint, MappedTensor& tensor) const {
  tensor.problem = check_parts(tensor);
  if (!tensor.problem.empty()) return;
  try {
    resolve_shape(checkpoint, tensor);
  } catch (const Error& error) {
    tensor.problem = error.what();
  }
}

std::map<std::string, int64_t> MappedTensors::axis_sizes(const KeyRule& rule) const {
  std::map<std::string, int64_t> result;
  for (const auto& [axis, size] : rule.sizes) {
    if (const int64_t* number = std::get_if<int64_t>(&size)) {
      result[axis] = *number;
      continue;
    }
    const auto& field = std::get<std::string>(size);
    const auto known = sizes_.find(field);
    if (known == sizes_.end()) {
      throw Error(rule.label, "the configuration's " + field, "a checkpoint without configuration");
    }
    result[axis] = known->second;
  }
  return result;
}

Shape MappedTensors::part_shape(const Checkpoint& checkpoint, const MappedPart& part) const {
  Shape shape = checkpoint.info(part.source).shape;
  if (part.rule == nullptr) return shape;
  const std::string where = str(part.rule->label, ": ", part.source);
  if (const auto [skip, rows] = std::pair(part.rule->skip, part.rule->rows); skip > 0 || rows > 0) {
    const int64_t min_rows = skip + std::max<int64_t>(rows, 1);
    if (shape.rank() == 0 || shape[0] < min_rows)
      throw Error(where, str("at least ", min_rows, " rows"), shape.to_string());
    shape[0] = rows > 0 ? rows : shape[0] - skip;
  }
  if (part.rule->rearrange) shape = part.rule->rearrange->shape(shape, axis_sizes(*part.rule), where);
  if (part.rule->cuts == 1) return shape;
  if (shape.rank() == 0 || shape[0] % part.rule->cuts != 0) {
    throw Error(where, str("a first extent that ", part.rule->cuts, " divides"), shape.to_string());
  }
  shape[0] = shape[0] / part.rule->cuts * (part.rule->last - part.rule->first);
  return shape;
}

// Parts are concatenated along axis 0; all other extents must be equal.
void MappedTensors::resolve_shape(const Checkpoint& checkpoint, MappedTensor& tensor) const {
  tensor.shape = part_shape(checkpoint, tensor.parts.front());
  for (size_t i = 1; i < tensor.parts.size(); ++i) {
    Shape other = part_shape(checkpoint, tensor.parts[i]);
    const bool compatible = other.rank() > 0 && other.rank() == tensor.shape.rank() &&
                            std::equal(other.begin() + 1, other.end(), tensor.shape.begin() + 1);
    if (!compatible) {
      throw Error(tensor.parts[i].source, str("a shape that joins ", tensor.shape, " along axis 0"), other.to_string());
    }
    tensor.shape[0] += other[0];
  }
}

Tensor MappedTensors::part_in(Tensor source, const MappedPart& part) const {
  if (part.rule == nullptr) return source;
  const std::string where = str(part.rule->label, ": ", part.source);
  if (const auto [skip, rows] = std::pair(part.rule->skip, part.rule->rows); skip > 0 || rows > 0)
    source = source.narrow(0, skip, rows > 0 ? rows : source.size(0) - skip);
  if (part.rule->rearrange) source = part.rule->rearrange->apply(source, axis_sizes(*part.rule), where);
  if (part.rule->cuts == 1) return source;
  const int64_t rows = source.size(0) / part.rule->cuts;
  return source.narrow(0, rows * part.rule->first, rows * (part.rule->last - part.rule->first));
}

Tensor MappedTensors::read(const Checkpoint& checkpoint, const MappedTensor& tensor, DType dtype) const {
  const auto read_part = [&](const MappedPart& part) { return part_in(checkpoint.tensor(part.source), part); };
  if (tensor.parts.size() == 1) {
    const Tensor part = read_part(tensor.parts.front());
    return (is_floating(part.dtype()) ? part.to(dtype) : part).contiguous();
  }
  Tensor joined;
  int64_t row = 0;
  for (const MappedPart& piece : tensor.parts) {
    const Tensor part = read_part(piece);
    if (!joined.defined()) joined = Tensor::empty(tensor.shape, is_floating(part.dtype()) ? dtype : part.dtype());
    joined.narrow(0, row, part.size(0)).copy_(part);
    row += part.size(0);
  }
  return joined;
}

void MappedTensors::write(const Checkpoint& checkpoint, const MappedTensor& tensor, const Tensor& native,
                          std::map<std::string, Tensor>& sources) const {
  int64_t row = 0;
  for (const MappedPart& piece : tensor.parts) {
    Tensor& source = sources[piece.source];
    if (!source.defined()) source = checkpoint.tensor(piece.source).to(DType::f32).clone();
    const Tensor part = part_in(source, piece);
    if (part.storage() != source.storage())
      throw Error(piece.source, "a layout that native values can be written back to", "another one");
    const bool whole = tensor.parts.size() == 1;
    part.copy_(whole ? native : native.narrow(0, row, part.size(0)));
    if (!whole) row += part.size(0);
  }
}

}  // namespace vitrail::weights
