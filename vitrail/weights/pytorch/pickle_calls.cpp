// SPDX-License-Identifier: Apache-2.0
// The results of the functions and classes that a pickle calls.  Only those that make tensors and containers are known.
#include <algorithm>

#include "vitrail/base/error.h"
#include "vitrail/weights/pytorch/pickle_internal.h"

namespace vitrail::weights {
namespace {

// Axes of stride 0 repeat elements.  This limits the size of a tensor that exceeds its storage.
constexpr int64_t kMaxRepeated = 1 << 20;

constexpr int64_t kMaxBytes = int64_t{1} << 56;

}  // namespace

const PickleValue& Pickle::argument(const Value& arguments, size_t index, Kind kind, const char* what) const {
  if (index >= arguments.items.size()) fail(what, str("only ", arguments.items.size(), " arguments"));
  const Value& value = *arguments.items[index];
  if (value.kind != kind) fail(what, describe(value));
  return value;
}

int64_t Pickle::count_argument(const Value& arguments, size_t index, const char* what) const {
  const int64_t value = argument(arguments, index, Kind::integer, what).integer;
  if (value < 0 || value > kMaxBytes) fail(str(what, " from 0 to 2^56"), str(value));
  return value;
}

Shape Pickle::shape_argument(const Value& arguments, size_t index, const char* what) const {
  const Value& tuple = argument(arguments, index, Kind::tuple, what);
  if (tuple.items.size() > Shape::kMaxRank) fail(str("at most ", Shape::kMaxRank, " axes"), str(tuple.items.size()));
  Shape shape;
  for (size_t i = 0; i < tuple.items.size(); ++i) shape.push_back(count_argument(tuple, i, what));
  return shape;
}

// An object is called where a function returned it.
PickleValue* Pickle::call(const Value& function, const Value& arguments) {
  if (function.kind == Kind::object) return make_object(function.global);
  if (function.kind != Kind::global) fail("a class or function", describe(function));
  return call(*function.global, arguments);
}

PickleValue* Pickle::call(const PickleGlobal& function, const Value& arguments) {
  using Id = PickleGlobal::Id;
  switch (function.id) {
    case Id::default_dict:
      return make(Kind::dict);
    case Id::ordered_dict:
    case Id::sequence:
    case Id::set:
      return call_container(function, arguments);
    case Id::encode:
      return make_text(Kind::bytes, argument(arguments, 0, Kind::string, "text to encode").text);
    case Id::rebuild_tensor:
      return rebuild_tensor(arguments, false);
    case Id::rebuild_tensor_v3:
      return rebuild_tensor(arguments, true);
    case Id::rebuild_parameter:
      return rebuild_parameter(arguments);
    case Id::rebuild_from_type:
      return rebuild_from_type(arguments);
    case Id::opaque:
    case Id::tensor_class:
    case Id::storage_type:
    case Id::dtype:
      break;
  }
  return make_object(&function);
}

PickleValue* Pickle::rebuild_parameter(const Value& arguments) {
  const bool object = !arguments.items.empty() && arguments.items[0]->kind == Kind::object;
  if (!object) argument(arguments, 0, Kind::tensor, "a parameter's tensor");
  return arguments.items[0];
}

// The arguments are a function, a class, the function's arguments, and the attributes.
PickleValue* Pickle::rebuild_from_type(const Value& arguments) {
  const PickleGlobal& inner = *argument(arguments, 0, Kind::global, "a function").global;
  if (inner.id == PickleGlobal::Id::rebuild_from_type) {
    fail("a function that rebuilds a tensor", "one that calls another");
  }
  return call(inner, argument(arguments, 2, Kind::tuple, "a tuple of arguments"));
}

// A container of the items of the single argument, or an empty one.  OrderedDict takes pairs or a dict.
PickleValue* Pickle::call_container(const PickleGlobal& function, const Value& arguments) {
  const bool dict = function.id == PickleGlobal::Id::ordered_dict;
  const Kind kind = dict ? Kind::dict : function.id == PickleGlobal::Id::set ? Kind::set : Kind::tuple;
  Value* result = make(kind);
  if (arguments.items.empty()) return result;
  const Value& source = *arguments.items[0];
  if (source.kind != Kind::list && source.kind != Kind::tuple && source.kind != Kind::dict) {
    return make_object(&function);
  }
  if (!dict || source.kind == Kind::dict) {
    add_items(*result, source.items);
    return result;
  }
  for (const Value* pair : source.items) {
    if ((pair->kind != Kind::list && pair->kind != Kind::tuple) || pair->items.size() != 2) {
      fail("pairs of key and value", describe(*pair));
    }
    add_items(*result, pair->items);
  }
  return result;
}

// The persistent id ("storage", type, key, location, count[, view]).  Old legacy files have a view (key, offset,
// count).
//
// Legacy files of whole modules also have ids ("module", class, source file, source text) for the classes.
PickleValue* Pickle::load_storage(const Value& id) {
  const std::string_view word = argument(id, 0, Kind::string, "the word \"storage\"").text;
  const bool module = word == "module" && id.items.size() == 4;
  if (!module && word != "storage") fail("a storage's id", "another id");
  const Value& named = argument(id, 1, Kind::global, module ? "a module's class" : "a storage's type");
  if (module) return id.items[1];
  const PickleGlobal& type = *named.global;
  if (type.id != PickleGlobal::Id::storage_type) return make_object(&type);
  PickledStorage storage;
  storage.type = type.type;
  storage.key = std::string(argument(id, 2, Kind::string, "a storage's key").text);
  storage.count = count_argument(id, 4, "a storage's size");
  if (id.items.size() > 5 && id.items[5]->kind != Kind::none) {
    const Value& view = argument(id, 5, Kind::tuple, "a view of a storage");
    storage.offset = count_argument(view, 1, "a view's offset");
    storage.count = count_argument(view, 2, "a view's size");
  }
  storages_.push_back(storage);
  Value* value = make(Kind::storage);
  value->tensor = std::make_shared<PickledTensor>();
  value->tensor->storage = std::move(storage);
  return value;
}

// _rebuild_tensor_v2(storage, offset, size, stride, requires_grad, hooks[, metadata]); v3 has dtype before metadata.
PickleValue* Pickle::rebuild_tensor(const Value& arguments, bool with_dtype) {
  if (!arguments.items.empty() && arguments.items[0]->kind == Kind::object) return arguments.items[0];
  auto tensor = std::make_shared<PickledTensor>();
  tensor->storage = argument(arguments, 0, Kind::storage, "a storage").tensor->storage;
  tensor->type = tensor->storage.type;
  if (with_dtype) {
    const PickleGlobal& dtype = *argument(arguments, 6, Kind::global, "a dtype").global;
    if (dtype.id != PickleGlobal::Id::dtype) return make_object(&dtype);
    if (!tensor->storage.type.untyped) fail("an untyped storage", "a typed one");
    tensor->type = dtype.type;
  } else if (tensor->storage.type.untyped) {
    tensor->type.untyped = false;  // read as bytes (u8)
  }
  tensor->offset = count_argument(arguments, 1, "a tensor's offset");
  tensor->shape = shape_argument(arguments, 2, "a tensor's size");
  tensor->strides = shape_argument(arguments, 3, "a tensor's strides");
  check_bounds(*tensor);
  if (has_negative_bit(arguments, with_dtype ? 7 : 6)) {
    tensor->type.unsupported = "a lazily negated tensor (torch._neg_view); save tensor.resolve_neg()";
  }
  Value* value = make(Kind::tensor);
  value->tensor = std::move(tensor);
  return value;
}

// Whether the metadata have {"neg": True}: the values are those of the storage with the opposite sign.  The other bit,
// "conj", changes complex numbers alone.
bool Pickle::has_negative_bit(const Value& arguments, size_t index) {
  const Value* const negative = index < arguments.items.size() ? arguments.items[index]->find("neg") : nullptr;
  return negative != nullptr && negative->kind == Kind::boolean && negative->integer != 0;
}

// Checks that every element is inside the storage.
void Pickle::check_bounds(const PickledTensor& tensor) const {
  if (tensor.shape.rank() != tensor.strides.rank()) fail("a stride for each axis", tensor.strides.to_string());
  const int64_t numel = checked_numel({tensor.shape.begin(), tensor.shape.end()}, where_);
  const int64_t count =
      tensor.storage.count / static_cast<int64_t>(tensor.storage.type.untyped ? tensor.type.bytes : 1);
  if (numel == 0) return;
  __int128 last = tensor.offset;
  for (int i = 0; i < tensor.shape.rank(); ++i) {
    last += static_cast<__int128>(tensor.shape[i] - 1) * tensor.strides[i];
  }
  if (last >= count) {
    fail(str("a tensor inside its storage of ", count, " elements"),
         str("shape ", tensor.shape, ", strides ", tensor.strides, ", offset ", tensor.offset));
  }
  if (numel > std::max(count, kMaxRepeated)) {
    fail(str("a tensor that repeats at most ", kMaxRepeated, " elements"), str("shape ", tensor.shape));
  }
}

}  // namespace vitrail::weights
