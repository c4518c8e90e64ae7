// SPDX-License-Identifier: Apache-2.0
#include "vitrail/weights/pytorch/pickle_globals_internal.h"

#include "vitrail/base/error.h"
#include "vitrail/weights/pytorch/refused_globals_internal.h"

namespace vitrail::weights {
namespace {

using Id = PickleGlobal::Id;

struct KnownGlobal {
  std::string_view module, name;
  Id id;
};
constexpr KnownGlobal kKnownGlobals[] = {
    {"collections", "OrderedDict", Id::ordered_dict},
    {"collections", "defaultdict", Id::default_dict},
    {"builtins", "dict", Id::ordered_dict},
    {"__builtin__", "dict", Id::ordered_dict},
    {"builtins", "list", Id::sequence},
    {"__builtin__", "list", Id::sequence},
    {"builtins", "tuple", Id::sequence},
    {"__builtin__", "tuple", Id::sequence},
    {"torch", "Size", Id::sequence},
    {"builtins", "set", Id::set},
    {"__builtin__", "set", Id::set},
    {"builtins", "frozenset", Id::set},
    {"__builtin__", "frozenset", Id::set},
    {"_codecs", "encode", Id::encode},
    {"torch._utils", "_rebuild_tensor", Id::rebuild_tensor},
    {"torch._utils", "_rebuild_tensor_v2", Id::rebuild_tensor},
    {"torch._utils", "_rebuild_tensor_v3", Id::rebuild_tensor_v3},
    {"torch._utils", "_rebuild_parameter", Id::rebuild_parameter},
    {"torch._utils", "_rebuild_parameter_with_state", Id::rebuild_parameter},
    {"torch._tensor", "_rebuild_from_type_v2", Id::rebuild_from_type},
    {"torch", "Tensor", Id::tensor_class},
    {"torch.nn.parameter", "Parameter", Id::tensor_class},
};

// torch's element types: storage class, names of the dtype, and the library's type.
struct TorchType {
  std::string_view storage, dtype, short_dtype;
  bool supported;
  DType type;
  uint64_t bytes;
  Float8 float8 = Float8::none;
};
constexpr TorchType kTypes[] = {
    {"DoubleStorage", "float64", "double", true, DType::f64, 8},
    {"FloatStorage", "float32", "float", true, DType::f32, 4},
    {"HalfStorage", "float16", "half", true, DType::f16, 2},
    {"BFloat16Storage", "bfloat16", "", true, DType::bf16, 2},
    {"LongStorage", "int64", "long", true, DType::i64, 8},
    {"IntStorage", "int32", "int", true, DType::i32, 4},
    {"CharStorage", "int8", "", true, DType::i8, 1},
    {"ByteStorage", "uint8", "", true, DType::u8, 1},
    {"BoolStorage", "bool", "", true, DType::boolean, 1},
    {"ShortStorage", "int16", "short", false, DType::u8, 2},
    {"ComplexFloatStorage", "complex64", "cfloat", false, DType::u8, 8},
    {"ComplexDoubleStorage", "complex128", "cdouble", false, DType::u8, 16},
    {"", "uint16", "", false, DType::u8, 2},
    {"", "uint32", "", false, DType::u8, 4},
    {"", "uint64", "", false, DType::u8, 8},
    {"", "float8_e4m3fn", "", true, DType::f32, 1, Float8::e4m3fn},
    {"", "float8_e5m2", "", true, DType::f32, 1, Float8::e5m2},
};

void find_type(std::string_view name, PickleGlobal& global) {
  for (const TorchType& type : kTypes) {
    const bool storage = name == type.storage;
    if (!storage && name != type.dtype && (type.short_dtype.empty() || name != type.short_dtype)) continue;
    global.id = storage ? Id::storage_type : Id::dtype;
    global.type = {type.type, type.supported ? "" : std::string(type.dtype), type.bytes, type.float8, false};
    return;
  }
}

}  // namespace

PickleGlobal find_pickle_global(std::string_view module, std::string_view name, const std::string& where) {
  if (module == "torch.storage" && name == "_load_from_bytes") {
    throw Error(where, "a pickle of tensors and plain values",
                "torch.storage._load_from_bytes, which is refused because it can run code: pickle.dump writes it for "
                "each tensor; if you made this file, save its weights with torch.save(state_dict, \"weights.pth\")");
  }
  if (is_refused_global(module, name)) {
    throw Error(where, "a pickle of tensors and plain values",
                str(module.substr(0, 80), ".", name.substr(0, 80),
                    ", which is refused because it can run code: do not load this file with Python either"));
  }
  PickleGlobal global;
  global.module = module;
  global.name = name;
  for (const KnownGlobal& known : kKnownGlobals) {
    if (module != known.module || name != known.name) continue;
    global.id = known.id;
    return global;
  }
  const bool storage_module = module == "torch" || module == "torch.storage" || module == "torch.cuda";
  if (storage_module && name == "UntypedStorage") {
    global.id = Id::storage_type;
    global.type.untyped = true;
    return global;
  }
  if (storage_module && !name.empty()) find_type(name, global);
  return global;
}

}  // namespace vitrail::weights
