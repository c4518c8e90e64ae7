// SPDX-License-Identifier: Apache-2.0
#pragma once
// A restricted reader of Python pickles, protocols 0 to 5, for files of torch.save.
//
// A pickle is a program for a stack machine that may call any Python function.  This reader supports only plain
// containers, numbers, strings and the functions that rebuild tensors (pickle_globals_internal.h lists them).  Other
// classes and functions are not imported or called: their results are objects that only know the global's name.  A
// global that can run code is an Error that names it (refused_globals_internal.h).
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

// A reference to a torch storage; its bytes are outside the pickle.
struct PickledStorage {
  std::string key;
  ElementType type;
  int64_t offset = 0;  // in elements, from the beginning of the bytes with this key
  int64_t count = 0;   // number of elements
};

// A strided view of a storage, validated against the storage's count.
struct PickledTensor {
  PickledStorage storage;
  ElementType type;    // the storage's type, unless the storage is untyped
  int64_t offset = 0;  // in elements of `type`
  Shape shape, strides;
};

// A Python object.  Containers may refer to each other in cycles, so traversal needs a depth limit.
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
  std::string_view text;                  // string, bytes, big_integer (little-endian bytes); a view of the pickle
  std::vector<PickleValue*> items;        // list, tuple, set; for a dict and an object alternating keys and values
  const PickleGlobal* global = nullptr;   // global; for an object its class or function; owned by the Pickle
  const PickleValue* state = nullptr;     // for an object the attributes that it was given, if any
  std::shared_ptr<PickledTensor> tensor;  // tensor; for a storage only its member `storage` is set

  bool has_entries() const { return kind == Kind::dict || kind == Kind::object; }
  // The value of a string key of a dict or an object, the last one if repeated (as in Python); null if there is none.
  const PickleValue* find(std::string_view key) const;
};

const char* name_of(PickleValue::Kind kind);

// For errors: the kind; for an object with its global ("an object of numpy.dtype").
std::string describe(const PickleValue& value);
std::string name_of(const PickleGlobal& global);  // "module.name"

// Reads one pickle and owns its objects.
class Pickle {
 public:
  // Reads from the beginning of `bytes`, which must outlive this object, to the end of the first pickle.  Throws Error
  // naming `where` for a refused global, an opcode that torch.save does not write, a truncated or malformed pickle, or
  // too many objects or items.
  Pickle(std::span<const std::byte> bytes, const std::string& where);

  const PickleValue& root() const { return *root_; }
  size_t size() const { return at_; }  // in bytes
  // All storages in the pickle, including those that the root does not refer to.
  const std::vector<PickledStorage>& storages() const { return storages_; }

 private:
  using Value = PickleValue;
  using Kind = PickleValue::Kind;

  [[noreturn]] void fail(const std::string& expected, const std::string& got) const;
  std::string_view take(uint64_t count);
  std::string_view take_line();
  uint64_t take_unsigned(int size);

  Value* make(Kind kind);
  void add_items(Value& container, std::span<Value* const> items);
  Value* make_integer(int64_t value, Kind kind = Kind::integer);
  Value* make_text(Kind kind, std::string_view text);
  Value* pop();
  Value* make_object(const PickleGlobal* global);
  Value* pop(Kind kind, const char* what);
  std::vector<Value*> pop_mark();

  // pickle_instructions.cpp.  execute…() returns whether it knows the opcode; the functions below it return true.
  bool execute(unsigned char code);
  bool execute_constant(unsigned char code);
  bool execute_text(unsigned char code);
  bool execute_container(unsigned char code);
  bool execute_memo(unsigned char code);
  bool execute_call(unsigned char code);
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
  bool push_object_of_mark();
  bool build();

  // pickle_calls.cpp: the results of calling functions and classes.
  Value* call(const Value& function, const Value& arguments);
  Value* call(const PickleGlobal& function, const Value& arguments);
  Value* call_container(const PickleGlobal& function, const Value& arguments);
  Value* rebuild_parameter(const Value& arguments);
  Value* rebuild_from_type(const Value& arguments);
  Value* rebuild_tensor(const Value& arguments, bool with_dtype);
  static bool has_negative_bit(const Value& arguments, size_t index);
  Value* load_storage(const Value& id);
  const Value& argument(const Value& arguments, size_t index, Kind kind, const char* what) const;
  int64_t count_argument(const Value& arguments, size_t index, const char* what) const;
  Shape shape_argument(const Value& arguments, size_t index, const char* what) const;
  void check_bounds(const PickledTensor& tensor) const;

  std::span<const std::byte> bytes_;
  std::string where_;
  size_t at_ = 0;
  std::deque<Value> values_;  // a deque, because elements must not move
  size_t items_ = 0;          // in all containers
  std::vector<Value*> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint64_t, Value*> memo_;
  std::deque<PickleGlobal> globals_;  // a deque, because elements must not move
  std::vector<PickledStorage> storages_;
  Value* root_ = nullptr;
};

}  // namespace vitrail::weights
