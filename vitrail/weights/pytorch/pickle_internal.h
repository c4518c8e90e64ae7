// SPDX-License-Identifier: Apache-2.0
#pragma once
// A restricted reader of Python pickles, protocols 0 to 5: enough for what torch.save writes, and no more.
//
// A pickle is a program for a stack machine that may call any Python function.  This machine knows only plain
// containers, numbers, strings and the functions that rebuild tensors (pickle_globals_internal.h lists all of them);
// any other name is an Error that says which.  Nothing is executed.
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "vitrail/tensor/tensor.h"
#include "vitrail/weights/pytorch/pickle_globals_internal.h"

namespace vitrail::weights {

// A torch storage as a pickle names it; its bytes lie elsewhere.
struct PickledStorage {
  std::string key;
  ElementType type;
  int64_t offset = 0;  // in elements, from the beginning of the bytes called `key`
  int64_t count = 0;   // elements
};

// A strided view of a storage.  Checked against the storage's count when it was read.
struct PickledTensor {
  PickledStorage storage;
  ElementType type;    // the storage's, unless that is untyped bytes
  int64_t offset = 0;  // in elements of `type`
  Shape shape, strides;
};

// One Python object.  Containers refer to others, possibly in cycles: never walk them without a bound.
struct PickleValue {
  enum class Kind : uint8_t {
    none,
    boolean,
    integer,
    big_integer,
    real,
    string,
    bytes,
    list,
    tuple,
    dict,
    set,
    global,
    storage,
    tensor,
    object
  };
  Kind kind = Kind::none;
  int64_t integer = 0;                    // integer, boolean
  std::string_view text;                  // string, bytes, big_integer (its little-endian bytes): part of the pickle
  std::vector<PickleValue*> items;        // list, tuple, set; of a dict key and value in turn
  const PickleGlobal* global = nullptr;   // global; the pickle owns it
  std::shared_ptr<PickledTensor> tensor;  // tensor; of a storage only the member of that name is set

  // Of a dict: the value of a string key, the last of that name as in Python; null when there is none.
  const PickleValue* find(std::string_view key) const;
};

const char* name_of(PickleValue::Kind kind);

// Reads one pickle and owns all its objects.
class Pickle {
 public:
  // Starts at the beginning of `bytes`, which must outlive this object, and stops behind the first complete pickle.
  // Throws Error naming `where` for a name that is refused, an opcode that no torch.save writes, a truncated or
  // malformed pickle, or one of absurdly many objects.
  Pickle(std::span<const std::byte> bytes, const std::string& where);

  const PickleValue& root() const { return *root_; }
  size_t size() const { return at_; }  // bytes it takes
  // Every storage it mentions, those outside the root's reach too.
  const std::vector<PickledStorage>& storages() const { return storages_; }

 private:
  using Value = PickleValue;
  using Kind = PickleValue::Kind;

  [[noreturn]] void fail(const std::string& expected, const std::string& got) const;
  std::string_view take(uint64_t count);
  std::string_view take_line();
  uint64_t take_unsigned(int size);

  Value* make(Kind kind);
  Value* make_integer(int64_t value, Kind kind = Kind::integer);
  Value* make_text(Kind kind, std::string_view text);
  Value* pop();
  Value* pop(Kind kind, const char* what);
  std::vector<Value*> pop_mark();

  // pickle_instructions.cpp: the instructions.  Those that give a bool give true, to be returned by a step.
  bool step(unsigned char code);
  bool step_constant(unsigned char code);
  bool step_text(unsigned char code);
  bool step_container(unsigned char code);
  bool step_memo(unsigned char code);
  bool step_call(unsigned char code);
  bool push(Value* value) { return stack_.push_back(value), true; }
  bool push_long(std::string_view little_endian);
  bool push_decimal(std::string_view line);
  bool push_tuple(size_t count);
  bool push_collected(Kind kind);
  bool extend(Kind kind, std::vector<Value*> items);
  bool push_global(std::string_view module, std::string_view name);
  bool remember(uint64_t index);
  bool recall(uint64_t index);
  uint64_t take_memo_index();
  bool build();

  // pickle_calls.cpp: what the known functions and classes give.
  Value* call(const PickleGlobal& function, const Value& arguments);
  Value* call_container(const PickleGlobal& function, const Value& arguments);
  Value* rebuild_tensor(const Value& arguments, bool with_dtype);
  Value* load_storage(const Value& id);
  const Value& argument(const Value& arguments, size_t index, Kind kind, const char* what) const;
  int64_t count_argument(const Value& arguments, size_t index, const char* what) const;
  Shape shape_argument(const Value& arguments, size_t index, const char* what) const;
  void check_bounds(const PickledTensor& tensor) const;

  std::span<const std::byte> bytes_;
  std::string where_;
  size_t at_ = 0;
  std::deque<Value> values_;  // never moved
  std::vector<Value*> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint64_t, Value*> memo_;
  std::deque<PickleGlobal> globals_;  // never moved
  std::vector<PickledStorage> storages_;
  Value* root_ = nullptr;
};

}  // namespace vitrail::weights
