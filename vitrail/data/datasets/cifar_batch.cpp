// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/datasets/cifar_batch_internal.h"

#include <optional>
#include <string_view>

#include "vitrail/base/error.h"
#include "vitrail/weights/pytorch/pickle_internal.h"

namespace vitrail::data {
namespace {

using weights::Pickle;
using weights::PickleValue;
using Kind = PickleValue::Kind;

void check_label(const std::string& where, size_t index, int64_t label, int64_t classes) {
  if (label < 0 || label >= classes) throw Error(str(where, "#", index), str("a label below ", classes), str(label));
}

// The value of a key, null without one.  What was read with encoding="bytes" and written again has bytes as keys.
const PickleValue* find_entry(const PickleValue& dict, std::string_view key) {
  if (const PickleValue* value = dict.find(key); value != nullptr || !dict.has_entries()) return value;
  for (size_t i = dict.items.size(); i >= 2; i -= 2) {
    if (dict.items[i - 2]->kind == Kind::bytes && dict.items[i - 2]->text == key) return dict.items[i - 1];
  }
  return nullptr;
}

const PickleValue& entry_of(const Pickle& pickle, const std::string& key, const std::string& where) {
  const PickleValue* value = find_entry(pickle.root(), key);
  if (value == nullptr) throw Error(where, "a CIFAR batch for Python: a dict with \"" + key + "\"", "none");
  return *value;
}

// A pickled NumPy array is an object whose state is (version, shape, dtype, is_fortran, bytes).  Its dtype is not read:
// the number of bytes tells the size of an element.
struct PickledArray {
  std::vector<int64_t> shape;
  std::string_view bytes;
};

// None for other values and for Fortran's order.
std::optional<PickledArray> array_of(const PickleValue& value) {
  const PickleValue* state = value.kind == Kind::object ? value.state : nullptr;
  if (state == nullptr || state->kind != Kind::tuple || state->items.size() != 5) return std::nullopt;
  const PickleValue &shape = *state->items[1], &fortran = *state->items[3], &content = *state->items[4];
  const bool has_bytes = content.kind == Kind::string || content.kind == Kind::bytes;
  if (shape.kind != Kind::tuple || fortran.integer != 0 || !has_bytes) return std::nullopt;
  PickledArray array{{}, content.text};
  for (const PickleValue* extent : shape.items) {
    if (extent->kind != Kind::integer) return std::nullopt;
    array.shape.push_back(extent->integer);
  }
  return array;
}

// Python 3 writes bytes in protocol 2 as a text of the characters U+0000 to U+00FF.  None if it has others.
std::optional<std::string> latin1_bytes(std::string_view utf8) {
  std::string bytes;
  for (size_t i = 0; i < utf8.size(); ++i) {
    const auto first = static_cast<uint8_t>(utf8[i]);
    if (first < 0x80) {
      bytes += utf8[i];
      continue;
    }
    if ((first != 0xC2 && first != 0xC3) || ++i == utf8.size()) return std::nullopt;
    bytes += static_cast<char>(first << 6 | (static_cast<uint8_t>(utf8[i]) & 0x3F));
  }
  return bytes;
}

// The labels of a list of integers, or of an array of them in little-endian order.
std::vector<int64_t> labels_of(const PickleValue& value, const std::string& key, const std::string& where) {
  std::vector<int64_t> labels;
  if (const auto array = array_of(value); array && array->shape.size() == 1 && array->shape[0] > 0) {
    const size_t size = array->bytes.size() / static_cast<size_t>(array->shape[0]);
    if ((size == 1 || size == 2 || size == 4 || size == 8) &&
        size * static_cast<size_t>(array->shape[0]) == array->bytes.size()) {
      for (size_t i = 0; i < array->bytes.size(); i += size) {
        uint64_t label = 0;
        for (size_t byte = size; byte-- > 0;) label = label << 8 | static_cast<uint8_t>(array->bytes[i + byte]);
        labels.push_back(static_cast<int64_t>(label));
      }
      return labels;
    }
  }
  if (value.kind != Kind::list || value.items.empty())
    throw Error(where, str("\"", key, "\": a list of labels"), weights::describe(value));
  for (const PickleValue* label : value.items) {
    if (label->kind != Kind::integer) throw Error(where, "integers as labels", weights::describe(*label));
    labels.push_back(label->integer);
  }
  return labels;
}

// Sets the pixels of a batch whose labels are known: a view of the file's bytes, or their decoded copy.
void set_pixels(const PickleValue& value, CifarBatch& batch) {
  const size_t rows = batch.labels.size(), size = rows * kCifarPixels;
  const std::string expected = str("\"data\": an array uint8 [", rows, ", ", kCifarPixels, "]");
  if (value.kind != Kind::object || value.state == nullptr) throw Error(batch.path, expected, weights::describe(value));
  const std::optional<PickledArray> array = array_of(value);
  const bool fits =
      array && array->shape == std::vector<int64_t>{static_cast<int64_t>(rows), static_cast<int64_t>(kCifarPixels)};
  std::string_view bytes = fits ? array->bytes : "";
  if (const auto decoded = bytes.size() > size ? latin1_bytes(bytes) : std::nullopt) {
    const auto owner = std::make_shared<const std::string>(*decoded);
    batch.owner = owner;
    bytes = *owner;
  }
  if (bytes.size() != size) throw Error(batch.path, expected, "an array of another shape, order or type");
  batch.pixels = reinterpret_cast<const std::byte*>(bytes.data());
}

}  // namespace

bool is_pickle(std::span<const std::byte> bytes) {
  return bytes.size() >= 2 && bytes[0] == std::byte{0x80} && bytes[1] >= std::byte{2} && bytes[1] <= std::byte{5};
}

CifarBatch read_cifar_binary(const CifarFile& file, const CifarVariant& variant) {
  const size_t record = variant.label_bytes + kCifarPixels, size = file.bytes.size();
  if (size == 0 || size % record != 0)
    throw Error(file.path, str("one or more records of ", record, " bytes"), str(size, " bytes"));
  CifarBatch batch{file.path, file.bytes.data() + variant.label_bytes, record, {}, file.owner};
  for (size_t i = 0; i < size / record; ++i) {
    const auto label = static_cast<uint8_t>(file.bytes[i * record + variant.label_bytes - 1]);
    check_label(file.path, i, label, variant.classes);
    batch.labels.push_back(label);
  }
  return batch;
}

CifarBatch read_cifar_pickle(const CifarFile& file, const CifarVariant& variant) {
  const Pickle pickle(file.bytes, file.path);
  CifarBatch batch{.path = file.path, .stride = kCifarPixels, .owner = file.owner};
  const PickleValue& labels = entry_of(pickle, variant.labels_key, file.path);
  batch.labels = labels_of(labels, variant.labels_key, file.path);
  for (size_t i = 0; i < batch.labels.size(); ++i) check_label(file.path, i, batch.labels[i], variant.classes);
  set_pixels(entry_of(pickle, "data", file.path), batch);
  return batch;
}

std::vector<std::string> read_pickled_names(const CifarFile& file, const std::string& key) {
  const Pickle pickle(file.bytes, file.path);
  const PickleValue* list = find_entry(pickle.root(), key);
  std::vector<std::string> names;
  if (list == nullptr || list->kind != Kind::list) return names;
  for (const PickleValue* item : list->items) {
    if (item->kind != Kind::string && item->kind != Kind::bytes)
      throw Error(file.path, "strings as class names", weights::describe(*item));
    names.emplace_back(item->text);
  }
  return names;
}

}  // namespace vitrail::data
