// SPDX-License-Identifier: Apache-2.0
// The stack machine: input, objects and stack.
#include "vitrail/weights/pytorch/pickle_internal.h"

#include "vitrail/base/error.h"

namespace vitrail::weights {
namespace {

// Limit the memory of hostile files to about 300 MB, besides the file and what its bytes push to the stack.  A ViT's
// checkpoint with optimiser state has some 10,000 objects.
constexpr size_t kMaxObjects = 2'000'000, kMaxItems = 4 * kMaxObjects;

}  // namespace

const char* name_of(PickleValue::Kind kind) {
  constexpr const char* kNames[] = {"None",     "a bool",  "an integer", "a long integer", "a float",
                                    "a string", "bytes",   "a list",     "a tuple",        "a dict",
                                    "a set",    "a class", "a storage",  "a tensor",       "an object"};
  static_assert(std::size(kNames) == static_cast<size_t>(PickleValue::Kind::object) + 1, "one per kind, in its order");
  return kNames[static_cast<int>(kind)];
}

std::string name_of(const PickleGlobal& global) {
  return str(global.module.substr(0, 80), ".", global.name.substr(0, 80));
}

std::string describe(const PickleValue& value) {
  if (value.kind == PickleValue::Kind::object) return "an object of " + name_of(*value.global);
  if (value.kind == PickleValue::Kind::global) return name_of(*value.global);
  return name_of(value.kind);
}

const PickleValue* PickleValue::find(std::string_view key) const {
  for (size_t i = items.size(); has_entries() && i >= 2; i -= 2) {
    if (items[i - 2]->kind == Kind::string && items[i - 2]->text == key) return items[i - 1];
  }
  return nullptr;
}

Pickle::Pickle(std::span<const std::byte> bytes, const std::string& where) : bytes_(bytes), where_(where) {
  while (root_ == nullptr) {
    const auto opcode = static_cast<unsigned char>(take(1)[0]);
    if (!execute(opcode)) fail("a pickle as torch.save writes it", str("opcode ", static_cast<int>(opcode)));
  }
}

void Pickle::fail(const std::string& expected, const std::string& got) const {
  throw Error(str(where_, ": pickle, byte ", at_), expected, got);
}

std::string_view Pickle::take(uint64_t count) {
  if (count > bytes_.size() - at_) fail("more data", "the end of the file: it is truncated or damaged");
  const std::string_view taken(reinterpret_cast<const char*>(bytes_.data()) + at_, count);
  at_ += count;
  return taken;
}

std::string_view Pickle::take_line() {
  const std::string_view remaining(reinterpret_cast<const char*>(bytes_.data()) + at_, bytes_.size() - at_);
  const size_t end = remaining.find('\n');
  if (end == std::string_view::npos) fail("a line", "the end of the file");
  at_ += end + 1;
  return remaining.substr(0, end);
}

uint64_t Pickle::take_unsigned(int size) {
  const std::string_view text = take(size);
  uint64_t value = 0;
  for (int i = size - 1; i >= 0; --i) value = value << 8 | static_cast<unsigned char>(text[i]);
  return value;
}

PickleValue* Pickle::make(Kind kind) {
  if (values_.size() >= kMaxObjects) fail(str("at most ", kMaxObjects, " objects"), "more");
  Value& value = values_.emplace_back();
  value.kind = kind;
  return &value;
}

void Pickle::add_items(Value& container, std::span<Value* const> items) {
  items_ += items.size();
  if (items_ > kMaxItems) fail(str("at most ", kMaxItems, " items of containers"), "more");
  container.items.insert(container.items.end(), items.begin(), items.end());
}

PickleValue* Pickle::make_integer(int64_t integer, Kind kind) {
  Value* value = make(kind);
  value->integer = integer;
  return value;
}

PickleValue* Pickle::make_text(Kind kind, std::string_view text) {
  Value* value = make(kind);
  value->text = text;
  return value;
}

PickleValue* Pickle::make_object(const PickleGlobal* global) {
  Value* value = make(Kind::object);
  value->global = global;
  return value;
}

// Objects below the last mark belong to an enclosing container and cannot be popped.
PickleValue* Pickle::pop() {
  if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) fail("an object on the stack", "none");
  Value* value = stack_.back();
  stack_.pop_back();
  return value;
}

PickleValue* Pickle::pop(Kind kind, const char* what) {
  Value* value = pop();
  if (value->kind != kind) fail(what, describe(*value));
  return value;
}

std::vector<PickleValue*> Pickle::pop_mark() {
  if (marks_.empty()) fail("a mark on the stack", "none");
  const size_t first = marks_.back();
  marks_.pop_back();
  std::vector<Value*> items(stack_.begin() + static_cast<std::ptrdiff_t>(first), stack_.end());
  stack_.resize(first);
  return items;
}

}  // namespace vitrail::weights
