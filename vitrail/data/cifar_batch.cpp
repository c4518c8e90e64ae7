// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/cifar_batch_internal.h"

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

const PickleValue& entry_of(const Pickle& pickle, const std::string& key, const std::string& where) {
  const PickleValue* value = pickle.root().has_entries() ? pickle.root().find(key) : nullptr;
  if (value == nullptr) throw Error(where, "a CIFAR batch for Python: a dict with \"" + key + "\"", "none");
  return *value;
}

// A pickled NumPy array is an object whose state is (version, shape, dtype, is_fortran, bytes).  Its dtype is not read:
// the number of bytes tells whether elements have one byte.
std::string_view array_bytes(const PickleValue& value, size_t rows, const std::string& where) {
  const std::string expected = str("\"data\": an array uint8 [", rows, ", ", kCifarPixels, "]");
  const PickleValue* state = value.kind == Kind::object ? value.state : nullptr;
  if (state == nullptr || state->kind != Kind::tuple || state->items.size() != 5)
    throw Error(where, expected, weights::describe(value));
  const PickleValue &shape = *state->items[1], &fortran = *state->items[3], &content = *state->items[4];
  const bool fits = shape.kind == Kind::tuple && shape.items.size() == 2 && shape.items[0]->kind == Kind::integer &&
                    shape.items[1]->kind == Kind::integer && shape.items[0]->integer == static_cast<int64_t>(rows) &&
                    shape.items[1]->integer == static_cast<int64_t>(kCifarPixels);
  const bool has_bytes = content.kind == Kind::string || content.kind == Kind::bytes;
  if (!fits || fortran.integer != 0 || !has_bytes || content.text.size() != rows * kCifarPixels)
    throw Error(where, expected, "an array of another shape, order or type");
  return content.text;
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
  if (labels.kind != Kind::list || labels.items.empty())
    throw Error(file.path, str("\"", variant.labels_key, "\": a list of labels"), weights::describe(labels));
  for (const PickleValue* label : labels.items) {
    if (label->kind != Kind::integer) throw Error(file.path, "integers as labels", weights::describe(*label));
    check_label(file.path, batch.labels.size(), label->integer, variant.classes);
    batch.labels.push_back(label->integer);
  }
  const std::string_view pixels = array_bytes(entry_of(pickle, "data", file.path), batch.labels.size(), file.path);
  batch.pixels = reinterpret_cast<const std::byte*>(pixels.data());  // a view of file.bytes
  return batch;
}

std::vector<std::string> read_pickled_names(const CifarFile& file, const std::string& key) {
  const Pickle pickle(file.bytes, file.path);
  const PickleValue* list = pickle.root().has_entries() ? pickle.root().find(key) : nullptr;
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
