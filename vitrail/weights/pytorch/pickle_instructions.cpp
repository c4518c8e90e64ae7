// SPDX-License-Identifier: Apache-2.0
// Execution of the stack machine's instructions.
#include <charconv>

#include "vitrail/base/error.h"
#include "vitrail/weights/pytorch/pickle_internal.h"
#include "vitrail/weights/pytorch/pickle_opcodes_internal.h"

namespace vitrail::weights {

namespace op = opcode;

// Each execute function returns false for an opcode of another group.
bool Pickle::execute(unsigned char code) {
  switch (code) {
    case op::kProto:
      if (const uint64_t protocol = take_unsigned(1); protocol > 5) fail("pickle protocol 0 to 5", str(protocol));
      return true;
    case op::kFrame:
      take(8);  // the frame size, a hint for stream readers
      return true;
    case op::kStop:
      root_ = pop();
      return true;
    case op::kMark:
      marks_.push_back(stack_.size());
      return true;
    case op::kPop:
      if (!marks_.empty() && marks_.back() == stack_.size()) {
        marks_.pop_back();
      } else {
        pop();
      }
      return true;
    case op::kPopMark:
      pop_mark();
      return true;
    case op::kDup:
      push(pop());
      return push(stack_.back());
    default:
      return execute_constant(code) || execute_text(code) || execute_container(code) || execute_memo(code) ||
             execute_call(code);
  }
}

bool Pickle::execute_constant(unsigned char code) {
  switch (code) {
    case op::kNone:
      return push(make(Kind::none));
    case op::kNewTrue:
      return push(make_integer(1, Kind::boolean));
    case op::kNewFalse:
      return push(make_integer(0, Kind::boolean));
    case op::kBinInt:
      return push(make_integer(static_cast<int32_t>(take_unsigned(4))));
    case op::kBinInt1:
      return push(make_integer(static_cast<int64_t>(take_unsigned(1))));
    case op::kBinInt2:
      return push(make_integer(static_cast<int64_t>(take_unsigned(2))));
    case op::kLong1:
      return push_long(take(take_unsigned(1)));
    case op::kLong4:
      return push_long(take(take_unsigned(4)));
    case op::kInt:
    case op::kLong:
      return push_decimal(take_line());
    case op::kBinFloat:  // the value is not needed for tensors
      take(8);
      return push(make(Kind::real));
    case op::kFloat:
      take_line();
      return push(make(Kind::real));
    default:
      return false;
  }
}

bool Pickle::execute_text(unsigned char code) {
  const auto text = [&](Kind kind, int length_size) { return push(make_text(kind, take(take_unsigned(length_size)))); };
  switch (code) {
    case op::kShortBinUnicode:
    case op::kShortBinString:
      return text(Kind::string, 1);
    case op::kBinUnicode:
    case op::kBinString:
      return text(Kind::string, 4);
    case op::kBinUnicode8:
      return text(Kind::string, 8);
    case op::kString: {  // in quotes
      const std::string_view line = take_line();
      return push(make_text(Kind::string, line.size() < 2 ? line : line.substr(1, line.size() - 2)));
    }
    case op::kUnicode:
      return push(make_text(Kind::string, take_line()));
    case op::kShortBinBytes:
      return text(Kind::bytes, 1);
    case op::kBinBytes:
      return text(Kind::bytes, 4);
    case op::kBinBytes8:
    case op::kByteArray8:
      return text(Kind::bytes, 8);
    default:
      return false;
  }
}

bool Pickle::execute_container(unsigned char code) {
  switch (code) {
    case op::kEmptyList:
      return push(make(Kind::list));
    case op::kEmptyTuple:
      return push(make(Kind::tuple));
    case op::kEmptyDict:
      return push(make(Kind::dict));
    case op::kEmptySet:
      return push(make(Kind::set));
    case op::kList:
      return push_collected(Kind::list);
    case op::kTuple:
      return push_collected(Kind::tuple);
    case op::kFrozenSet:
      return push_collected(Kind::set);
    case op::kDict:
      return push_collected(Kind::dict);
    case op::kTuple1:
      return push_tuple(1);
    case op::kTuple2:
      return push_tuple(2);
    case op::kTuple3:
      return push_tuple(3);
    case op::kAppend:
      return extend(Kind::list, {pop()});
    case op::kAppends:
      return extend(Kind::list, pop_mark());
    case op::kAddItems:
      return extend(Kind::set, pop_mark());
    case op::kSetItem: {
      Value* value = pop();
      return extend(Kind::dict, {pop(), value});
    }
    case op::kSetItems:
      return extend(Kind::dict, pop_mark());
    default:
      return false;
  }
}

bool Pickle::execute_memo(unsigned char code) {
  switch (code) {
    case op::kBinPut:
      return remember(take_unsigned(1));
    case op::kLongBinPut:
      return remember(take_unsigned(4));
    case op::kPut:
      return remember(take_memo_index());
    case op::kMemoize:
      return remember(memo_.size());
    case op::kBinGet:
      return recall(take_unsigned(1));
    case op::kLongBinGet:
      return recall(take_unsigned(4));
    case op::kGet:
      return recall(take_memo_index());
    default:
      return false;
  }
}

bool Pickle::execute_call(unsigned char code) {
  switch (code) {
    case op::kGlobal: {
      const std::string_view module = take_line();
      return push_global(module, take_line());
    }
    case op::kStackGlobal: {
      const std::string_view name = pop(Kind::string, "a name")->text;
      return push_global(pop(Kind::string, "a module's name")->text, name);
    }
    case op::kReduce:
    case op::kNewObj: {
      const Value* arguments = pop(Kind::tuple, "a tuple of arguments");
      return push(call(*pop(), *arguments));
    }
    case op::kNewObjEx: {
      pop();  // keyword arguments
      const Value* arguments = pop(Kind::tuple, "a tuple of arguments");
      return push(call(*pop(), *arguments));
    }
    case op::kInst: {
      const std::string_view module = take_line();
      push_global(module, take_line());
      const Value* const type = pop();
      Value* arguments = make(Kind::tuple);
      arguments->items = pop_mark();
      return push(call(*type, *arguments));
    }
    case op::kObj:
      return push_object_of_mark();
    case op::kExt1:
    case op::kExt2:
    case op::kExt4:
      take(code == op::kExt1 ? 1 : code == op::kExt2 ? 2 : 4);
      return push_global("copyreg", "extension");
    case op::kBuild:
      return build();
    case op::kBinPersId:
      return push(load_storage(*pop(Kind::tuple, "a storage's id as a tuple")));
    default:
      return false;
  }
}

// Two's complement of any length.  More than 64 bits (the legacy format's magic number) are kept as bytes.
bool Pickle::push_long(std::string_view little_endian) {
  if (little_endian.size() > 8) return push(make_text(Kind::big_integer, little_endian));
  uint64_t value = 0;
  for (size_t i = little_endian.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(little_endian[i]);
  const int bits = static_cast<int>(little_endian.size()) * 8;
  if (bits > 0 && bits < 64 && (value >> (bits - 1)) != 0) value |= ~uint64_t{0} << bits;
  return push(make_integer(static_cast<int64_t>(value)));
}

// Protocol 0: "12" or "12L"; "01" and "00" are True and False.
bool Pickle::push_decimal(std::string_view line) {
  if (line == "01" || line == "00") return push(make_integer(line == "01", Kind::boolean));
  if (line.ends_with('L')) line.remove_suffix(1);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), value);
  if (error != std::errc() || end != line.data() + line.size()) fail("an integer of 64 bits", "something else");
  return push(make_integer(value));
}

bool Pickle::push_tuple(size_t count) {
  Value* tuple = make(Kind::tuple);
  tuple->items.resize(count);
  for (size_t i = count; i-- > 0;) tuple->items[i] = pop();
  return push(tuple);
}

bool Pickle::push_collected(Kind kind) {
  std::vector<Value*> items = pop_mark();
  push(make(kind));
  return extend(kind, std::move(items));
}

// An object keeps the entries of a dict's subclass; the items of other subclasses are not needed.
bool Pickle::extend(Kind kind, std::vector<Value*> items) {
  if (kind == Kind::dict && items.size() % 2 != 0) fail("keys and values", "a key without a value");
  Value* container = pop();
  const bool object = container->kind == Kind::object;
  if (!object && container->kind != kind) fail(name_of(kind), describe(*container));
  if (object && kind != Kind::dict) return push(container);
  add_items(*container, items);
  return push(container);
}

uint64_t Pickle::take_memo_index() {
  const std::string_view line = take_line();
  uint64_t index = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), index);
  if (error != std::errc() || end != line.data() + line.size()) fail("a memo index", "something else");
  return index;
}

bool Pickle::remember(uint64_t index) {
  push(pop());
  memo_[index] = stack_.back();
  return true;
}

bool Pickle::recall(uint64_t index) {
  const auto found = memo_.find(index);
  if (found == memo_.end()) fail("an object in the memo", str("none at ", index));
  return push(found->second);
}

bool Pickle::push_global(std::string_view module, std::string_view name) {
  globals_.push_back(find_pickle_global(module, name, where_));
  Value* value = make(Kind::global);
  value->global = &globals_.back();
  return push(value);
}

// The items since the last mark are a class and its arguments.
bool Pickle::push_object_of_mark() {
  Value* arguments = make(Kind::tuple);
  arguments->items = pop_mark();
  if (arguments->items.empty()) fail("a class and its arguments", "none");
  const Value* const type = arguments->items.front();
  arguments->items.erase(arguments->items.begin());
  return push(call(*type, *arguments));
}

// Tensors and containers do not need their attributes (an OrderedDict's _metadata).
bool Pickle::build() {
  const Value* const state = pop();
  Value* object = pop();
  switch (object->kind) {
    case Kind::object:
      object->state = state;
      return push(object);
    case Kind::dict:
    case Kind::set:
    case Kind::global:
    case Kind::tensor:
      return push(object);
    default:
      fail("an object that has attributes", describe(*object));
  }
}

}  // namespace vitrail::weights
