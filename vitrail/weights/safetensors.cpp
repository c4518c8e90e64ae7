// SPDX-License-Identifier: Apache-2.0
// Reads safetensors.
#include "vitrail/weights/safetensors.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "vitrail/base/error.h"
#include "vitrail/base/json_checks_internal.h"
#include "vitrail/weights/float8_internal.h"

namespace vitrail::weights {
namespace {

using nlohmann::json;

constexpr uint64_t kMaxHeader = 100'000'000;  // the reference implementation's limit
constexpr int kMaxHeaderDepth = 3;            // {name: {"shape": […]}}

// A dtype of the format: the bits of an element, and the library's type if it has one.
struct FileDType {
  const char* name;
  uint64_t bits;
  bool supported;
  DType dtype;
  Float8 float8 = Float8::none;  // read as f32
};
constexpr FileDType kDTypes[] = {
    {"F64", 64, true, DType::f64},
    {"F32", 32, true, DType::f32},
    {"F16", 16, true, DType::f16},
    {"BF16", 16, true, DType::bf16},
    {"I64", 64, true, DType::i64},
    {"I32", 32, true, DType::i32},
    {"I8", 8, true, DType::i8},
    {"U8", 8, true, DType::u8},
    {"BOOL", 8, true, DType::boolean},
    {"I16", 16, false, DType::f32},
    {"U16", 16, false, DType::f32},
    {"U32", 32, false, DType::f32},
    {"U64", 64, false, DType::f32},
    {"C64", 64, false, DType::f32},
    {"F8_E4M3", 8, true, DType::f32, Float8::e4m3fn},
    {"F8_E5M2", 8, true, DType::f32, Float8::e5m2},
    {"F8_E8M0", 8, false, DType::f32},
    {"F6_E2M3", 6, false, DType::f32},
    {"F6_E3M2", 6, false, DType::f32},
    {"F4", 4, false, DType::f32},
};

// A JSON value for an error message, truncated to 80 characters.
std::string truncated(const json& value) {
  std::string text = value.dump(-1, ' ', true);
  if (text.size() > 80) text = text.substr(0, 77) + "...";
  return text;
}

struct DataRange {
  uint64_t begin, end;  // byte offsets after the header
  size_t index;
};

class SafetensorsFile : public TensorFile {
 public:
  explicit SafetensorsFile(const FileBytes& bytes) : bytes_(bytes) {
    format_ = "safetensors";
    const std::string_view header = find_header();
    const json parsed = parse_header(header);
    for (const auto& [name, entry] : parsed.items()) {
      if (name == "__metadata__") {
        read_metadata(entry);
      } else {
        read_entry(name, entry);
      }
    }
    check_coverage();
  }

  Tensor tensor(size_t index) const override {
    const TensorInfo& info = tensors_[index];
    if (!info.unsupported_dtype.empty()) {
      throw Error(str(bytes_.where, ": ", info.name), "f64, f32, f16, bf16, i64, i32, i8, u8 or bool",
                  info.unsupported_dtype);
    }
    const uint64_t begin = data_begin_ + begins_[index];
    if (float8_[index] != Float8::none) return widen(bytes_.tensor(begin, DType::u8, info.shape), float8_[index]);
    return bytes_.tensor(begin, info.dtype, info.shape);
  }

 private:
  std::string_view find_header() {
    const auto data = bytes_.data;
    if (data.size() < 8) throw Error(bytes_.where, "a safetensors header of at least 8 bytes", str(data.size()));
    uint64_t length = 0;
    for (int i = 7; i >= 0; --i) length = length << 8 | static_cast<uint64_t>(data[i]);
    if (length > kMaxHeader) {
      throw Error(bytes_.where, str("a safetensors header of at most ", kMaxHeader, " bytes"), str(length));
    }
    if (length > data.size() - 8) {
      throw Error(bytes_.where, str("a safetensors header inside the file's ", data.size(), " bytes"),
                  str(length, " bytes of header: the file is truncated or damaged"));
    }
    data_begin_ = 8 + length;
    return {reinterpret_cast<const char*>(data.data()) + 8, length};
  }

  // The JSON parser keeps the last of equal keys, which would hide a tensor.  So repeated keys are detected here.
  json parse_header(std::string_view text) const {
    if (json_depth(text) > kMaxHeaderDepth) {
      throw Error(bytes_.where, "a safetensors header", "JSON that is nested deeper");
    }
    if (const auto repeated = json_content(text, {}).repeated_key) {
      throw Error(bytes_.where, "each name once in the safetensors header", str("\"", *repeated, "\" twice"));
    }
    json parsed;
    try {
      parsed = json::parse(text);
    } catch (const json::exception& error) {
      throw Error(bytes_.where, "JSON in the safetensors header", json_fault(text, error));
    }
    if (!parsed.is_object()) throw Error(bytes_.where, "a JSON object as safetensors header", parsed.type_name());
    return parsed;
  }

  void read_metadata(const json& entry) {
    if (!entry.is_object()) throw Error(bytes_.where, "__metadata__ as an object of strings", entry.type_name());
    for (const auto& [key, value] : entry.items()) {
      if (!value.is_string()) throw Error(str(bytes_.where, ": __metadata__: ", key), "a string", value.type_name());
      metadata_[key] = value.get<std::string>();
    }
  }

  static int64_t integer(const json& value, const std::string& where) {
    if (!value.is_number_unsigned() || value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)) {
      throw Error(where, "integers of at least 0", truncated(value));
    }
    return value.get<int64_t>();
  }

  void read_entry(const std::string& name, const json& entry) {
    const std::string where = str(bytes_.where, ": ", name);
    if (!entry.is_object() || !entry.contains("dtype") || !entry.contains("shape") || !entry.contains("data_offsets")) {
      throw Error(where, "an object with dtype, shape and data_offsets", truncated(entry));
    }
    const json &dtype = entry["dtype"], &shape = entry["shape"], &offsets = entry["data_offsets"];
    const auto known = std::find_if(std::begin(kDTypes), std::end(kDTypes),
                                    [&](const FileDType& d) { return dtype.is_string() && dtype == d.name; });
    if (known == std::end(kDTypes)) throw Error(where, "a dtype of the safetensors format", truncated(dtype));
    if (!shape.is_array() || shape.size() > Shape::kMaxRank) {
      throw Error(where, str("a shape of at most ", Shape::kMaxRank, " extents"), truncated(shape));
    }
    TensorInfo info{name, known->dtype, {}, known->supported ? "" : known->name};
    for (const json& extent : shape) info.shape.push_back(integer(extent, where));
    if (!offsets.is_array() || offsets.size() != 2) throw Error(where, "two data_offsets", truncated(offsets));
    const DataRange range{static_cast<uint64_t>(integer(offsets[0], where)),
                          static_cast<uint64_t>(integer(offsets[1], where)), tensors_.size()};

    const uint64_t count = static_cast<uint64_t>(checked_numel({info.shape.begin(), info.shape.end()}, where));
    uint64_t bits = 0;
    if (__builtin_mul_overflow(count, known->bits, &bits) || bits % 8 != 0) {
      throw Error(where, "complete bytes, fewer than 2^61", str(count, " elements of ", known->name));
    }
    if (range.end < range.begin || range.end - range.begin != bits / 8) {
      throw Error(where, str(bits / 8, " bytes for ", known->name, " ", info.shape),
                  str("data_offsets ", range.begin, " to ", range.end));
    }
    begins_.push_back(range.begin);
    float8_.push_back(known->float8);
    ranges_.push_back(range);
    tensors_.push_back(std::move(info));
  }

  // The tensors, sorted by offset, must cover the data without overlap or gap to the end of the file.
  void check_coverage() {
    std::sort(ranges_.begin(), ranges_.end(), [](const DataRange& a, const DataRange& b) {
      return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
    });
    const uint64_t available = bytes_.data.size() - data_begin_;
    uint64_t at = 0;
    for (const DataRange& range : ranges_) {
      const std::string where = str(bytes_.where, ": ", tensors_[range.index].name);
      if (range.begin != at) {
        throw Error(where, str("its data at byte ", at, ", after the preceding tensor"),
                    str("byte ", range.begin, range.begin < at ? ": the tensors overlap" : ": a gap between tensors"));
      }
      if (range.end > available) {
        throw Error(where, str("data inside the file, which has ", available, " bytes after its header"),
                    str("an end at byte ", range.end, ": the file is truncated or damaged"));
      }
      at = range.end;
    }
    if (at != available) {
      throw Error(bytes_.where, str(at, " bytes of tensors after the header"), str(available, " bytes"));
    }
    ranges_.clear();
    ranges_.shrink_to_fit();
  }

  FileBytes bytes_;
  uint64_t data_begin_ = 0;
  std::vector<uint64_t> begins_;   // byte offset of each tensor after the header
  std::vector<Float8> float8_;     // one per tensor
  std::vector<DataRange> ranges_;  // used while opening
};

}  // namespace

std::unique_ptr<TensorFile> open_safetensors(const FileBytes& bytes) {
  return std::make_unique<SafetensorsFile>(bytes);
}

}  // namespace vitrail::weights
