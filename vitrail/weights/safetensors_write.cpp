// SPDX-License-Identifier: Apache-2.0
// Writes safetensors.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "vitrail/base/atomic_file.h"
#include "vitrail/base/error.h"
#include "vitrail/weights/safetensors.h"

namespace vitrail::weights {
namespace {

using Json = nlohmann::ordered_json;
using Named = std::pair<std::string, Tensor>;

const char* file_name_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return "F64";
    case DType::f32:
      return "F32";
    case DType::bf16:
      return "BF16";
    case DType::f16:
      return "F16";
    case DType::i64:
      return "I64";
    case DType::i32:
      return "I32";
    case DType::i8:
      return "I8";
    case DType::u8:
      return "U8";
    case DType::boolean:
      break;
  }
  return "BOOL";
}

// The position of a type in the reference implementation's enumeration.  Tensors are written by descending position, so
// that each begins at a multiple of its element size.
int layout_rank(DType dtype) {
  switch (dtype) {
    case DType::boolean:
      return 0;
    case DType::u8:
      return 1;
    case DType::i8:
      return 2;
    case DType::f16:
      return 3;
    case DType::bf16:
      return 4;
    case DType::i32:
      return 5;
    case DType::f32:
      return 6;
    case DType::f64:
      return 7;
    case DType::i64:
      break;
  }
  return 8;
}

std::vector<const Named*> in_file_order(const std::filesystem::path& path, const std::vector<Named>& tensors) {
  std::vector<const Named*> order;
  for (const Named& tensor : tensors) order.push_back(&tensor);
  std::sort(order.begin(), order.end(), [](const Named* a, const Named* b) {
    const int rank_a = layout_rank(a->second.dtype()), rank_b = layout_rank(b->second.dtype());
    return rank_a != rank_b ? rank_a > rank_b : a->first < b->first;
  });
  std::vector<std::string> names;
  for (const Named& tensor : tensors) names.push_back(tensor.first);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) throw Error(path.string(), "each tensor name once", str("\"", *twice, "\" twice"));
  if (std::binary_search(names.begin(), names.end(), "__metadata__")) {
    throw Error(path.string(), "tensor names", "\"__metadata__\", which the format reserves");
  }
  return order;
}

std::string make_header(const std::vector<const Named*>& order, const std::map<std::string, std::string>& metadata) {
  Json header = Json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  uint64_t at = 0;
  for (const Named* named : order) {
    const Tensor& tensor = named->second;
    const uint64_t end = at + static_cast<uint64_t>(tensor.numel()) * size_of(tensor.dtype());
    Json& entry = header[named->first];
    entry["dtype"] = file_name_of(tensor.dtype());
    entry["shape"] = std::vector<int64_t>(tensor.shape().begin(), tensor.shape().end());
    entry["data_offsets"] = {at, end};
    at = end;
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const Json::exception&) {
    throw Error("safetensors", "tensor names and metadata in UTF-8", "other bytes");
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

}  // namespace

void write_safetensors(AtomicFile& file, const std::vector<std::pair<std::string, Tensor>>& tensors,
                       const std::map<std::string, std::string>& metadata, const std::filesystem::path& where) {
  const auto order = in_file_order(where, tensors);
  const std::string header = make_header(order, metadata);
  unsigned char length[8];
  for (int i = 0; i < 8; ++i) length[i] = static_cast<unsigned char>(static_cast<uint64_t>(header.size()) >> (8 * i));
  file.write(length, sizeof length);
  file.write(header);
  for (const Named* named : order) {
    const Tensor tensor = named->second.contiguous();
    const size_t bytes = static_cast<size_t>(tensor.numel()) * size_of(tensor.dtype());
    if (bytes > 0) file.write(tensor.raw(), bytes);
  }
}

void write_safetensors(const std::filesystem::path& path, const std::vector<std::pair<std::string, Tensor>>& tensors,
                       const std::map<std::string, std::string>& metadata) {
  AtomicFile file(path);
  write_safetensors(file, tensors, metadata, path);
  file.commit();
}

}  // namespace vitrail::weights
