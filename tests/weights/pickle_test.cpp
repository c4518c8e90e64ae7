// SPDX-License-Identifier: Apache-2.0
// Handwritten pickles: malformed ones, and forms that only old versions of torch.save wrote.
#include "vitrail/weights/pytorch/pickle_internal.h"

#include <gtest/gtest.h>

#include <deque>
#include <optional>
#include <tuple>

#include "vitrail/base/error.h"
#include "vitrail/weights/pytorch/pickle_globals_internal.h"

namespace vitrail::weights {
namespace {

using Kind = PickleValue::Kind;

// A Pickle is a view of its text, which is kept until the test program ends.
Pickle read(const std::string& text) {
  static std::deque<std::string> texts;
  const std::string& kept = texts.emplace_back(text);
  return Pickle({reinterpret_cast<const std::byte*>(kept.data()), kept.size()}, "file.pt");
}

std::string error_of(const std::string& text) {
  try {
    read(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::string text_of(const std::string& text) { return std::string("\x8c") + static_cast<char>(text.size()) + text; }
std::string global(const std::string& module, const std::string& name) { return "c" + module + "\n" + name + "\n"; }
std::string integer(int64_t value) { return "I" + std::to_string(value) + "\n"; }
std::string tuple(const std::string& items) { return "(" + items + "t"; }

// A FloatStorage of `count` elements called "0", and a tensor of it.
std::string storage(int64_t count, const std::string& view = "") {
  return tuple(text_of("storage") + global("torch", "FloatStorage") + text_of("0") + text_of("cpu") + integer(count) +
               view) +
         "Q";
}
std::string tensor(const std::string& of, int64_t offset, const std::string& shape, const std::string& strides) {
  return global("torch._utils", "_rebuild_tensor_v2") +
         tuple(of + integer(offset) + tuple(shape) + tuple(strides) + "\x89" + global("collections", "OrderedDict") +
               ")R") +
         "R.";
}

TEST(Pickle, ReadsIntegersOfEveryProtocol) {
  EXPECT_EQ(read("J\xff\xff\xff\xff.").root().integer, -1);
  EXPECT_EQ(read("M\xff\xff.").root().integer, 65535);
  EXPECT_EQ(read("L-12L\n.").root().integer, -12);
  EXPECT_EQ(read("\x8a\x01\x80.").root().integer, -128);
  EXPECT_EQ(read(std::string("\x8a\x00.", 3)).root().integer, 0);
  EXPECT_EQ(read("\x8a\x09"
                 "123456789.")
                .root()
                .kind,
            Kind::big_integer);
  EXPECT_EQ(read("I01\n.").root().kind, Kind::boolean);
}

TEST(Pickle, ContainersMayBeSharedAndCyclic) {
  EXPECT_EQ(read("(I1\nI2\nl.").root().items.size(), 2u);
  EXPECT_EQ(read("(I1\nI2\nd.").root().items.size(), 2u);
  EXPECT_EQ(read("((I1\n1I2\nt.").root().items.size(), 1u) << "POP_MARK";
  const Pickle own = read(
      "]q\x01h\x01"
      "a.");
  EXPECT_EQ(own.root().items[0], &own.root());
}

TEST(Pickle, TheLastOfEqualKeysWins) {
  EXPECT_EQ(read("}(" + text_of("a") + "K\x01" + text_of("a") + "K\x02u.").root().find("a")->integer, 2);
}

TEST(Pickle, MalformedPicklesAreErrors) {
  const std::pair<std::string, const char*> invalid[] = {
      {"", "truncated"},
      {"\x80\x06.", "protocol 0 to 5"},
      {"\x80\x02", "truncated"},
      {".", "on the stack"},
      {"(.", "on the stack"},
      {"t.", "a mark"},
      {"K\x01"
       "a.",
       "on the stack"},
      {"K\x01K\x01"
       "a.",
       "a list"},
      {"}K\x01K\x01u.", "a mark"},
      {"}(K\x01u.", "without a value"},
      {"h\x05.", "in the memo"},
      {"gx\n.", "memo index"},
      {"X\xff\xff\xff\xff"
       "a.",
       "truncated"},
      {"\x8d\xff\xff\xff\xff\xff\xff\xff\xff.", "truncated"},
      {"\x8b\xff\xff\xff\xff.", "truncated"},
      {"K\x01R.", "a tuple of arguments"},
      {"K\x01)R.", "a class or function"},
      {"K\x01K\x01"
       "b.",
       "has attributes"},
      {"cos\nsystem\n.", "os.system, which is refused"},
      {text_of("os") + text_of("system") + "\x93.", "os.system, which is refused"},
      {"c" + std::string(1000, 'x'), "a line"},
      {"(ios\nsystem\n.", "os.system, which is refused"},
      {"\x97.", "opcode 151"},
      {"Pid\n.", "opcode 80"},
      {"I12x\n.", "an integer"},
      {"I99999999999999999999\n.", "an integer"},
      {"K\x01Q.", "a storage's id"},
      {tuple(text_of("module")) + "Q.", "a storage's id"},
      {global("torch._utils", "_rebuild_tensor_v2") + ")R.", "only 0 arguments"},
      {global("collections", "OrderedDict") + "((I1\ntt"
                                              "R.",
       "pairs of key and value"}};
  for (const auto& [text, part] : invalid) {
    const std::string error = error_of(text);
    EXPECT_NE(error.find(part), std::string::npos) << error << "\n  for " << ::testing::PrintToString(text);
    EXPECT_EQ(error.rfind("file.pt", 0), 0u) << error;
  }
}

// What is below a mark belongs to the container that begins there.
TEST(Pickle, ObjectsBelowAMarkCannotBeTaken) {
  const std::string list = "]", one = "K\x01", attributes = "b", append = "a", reduce = "R", call = "(";
  for (const std::string& text : {one + call + ".", list + call + one + append + ".",
                                  global("collections", "OrderedDict") + call + ")" + reduce + "."}) {
    EXPECT_NE(error_of(text).find("an object on the stack"), std::string::npos) << ::testing::PrintToString(text);
  }
  EXPECT_EQ(read(one + call + one + one + "t.").root().items.size(), 2U);
}

TEST(Pickle, DeepNestingDoesNotOverflowTheStack) {
  std::string deep(500000, ']');
  for (int i = 0; i < 499999; ++i) deep += 'a';
  EXPECT_EQ(read(deep + ".").root().items.size(), 1u);
}

TEST(Pickle, NestedRebuildFunctionsAreErrors) {
  const std::string from_type = global("torch._tensor", "_rebuild_from_type_v2");
  const std::string call = from_type + "(" + from_type + global("torch", "Tensor") + ")NtR.";
  EXPECT_NE(error_of(call).find("calls another"), std::string::npos) << error_of(call);
}

TEST(Pickle, TensorsMustBeInsideTheirStorage) {
  EXPECT_EQ(read(tensor(storage(6), 0, integer(2) + integer(3), integer(3) + integer(1))).root().tensor->shape,
            (Shape{2, 3}));
  const std::string huge = integer(int64_t{1} << 40);
  const std::pair<std::string, const char*> invalid[] = {
      {tensor(storage(6), 1, integer(2) + integer(3), integer(3) + integer(1)), "inside its storage of 6"},
      {tensor(storage(6), 0, integer(2), integer(6)), "inside its storage of 6"},
      {tensor(storage(6), 0, integer(2), integer(-1)), "from 0 to 2^56"},
      {tensor(storage(6), -1, integer(2), integer(1)), "from 0 to 2^56"},
      {tensor(storage(-1), 0, integer(2), integer(1)), "from 0 to 2^56"},
      {tensor(storage(6), 0, integer(2), integer(1) + integer(1)), "a stride for each axis"},
      {tensor(storage(6), 0, huge, integer(0)), "repeats at most"},
      {tensor(storage(6), 0, huge + huge, integer(0) + integer(0)), "2^63"},
      {tensor(storage(6), 0, huge, huge), "inside its storage"},
      {tensor(storage(int64_t{1} << 60), 0, integer(1), integer(1)), "2^56"},
      {tensor("N", 0, integer(1), integer(1)), "a storage, got None"}};
  for (const auto& [text, part] : invalid) EXPECT_NE(error_of(text).find(part), std::string::npos) << error_of(text);
}

TEST(Pickle, StorageViewsOfOldFilesHaveAnOffset) {
  const auto pickle =
      read(tensor(storage(6, tuple(text_of("v") + integer(2) + integer(3))), 1, integer(2), integer(1)));
  EXPECT_EQ(pickle.root().tensor->storage.offset, 2);
  EXPECT_EQ(pickle.root().tensor->storage.count, 3);
}

TEST(Pickle, UntypedStoragesHaveTheTypeOfTheTensor) {
  const std::string untyped = tuple(text_of("storage") + global("torch.storage", "UntypedStorage") + text_of("0") +
                                    text_of("cpu") + integer(8)) +
                              "Q";
  const auto with_dtype = [&](const std::string& dtype, int64_t count) {
    return global("torch._utils", "_rebuild_tensor_v3") +
           tuple(untyped + integer(0) + tuple(integer(count)) + tuple(integer(1)) + "\x89" +
                 global("collections", "OrderedDict") + ")R" + global("torch", dtype)) +
           "R.";
  };
  EXPECT_EQ(read(with_dtype("float32", 2)).root().tensor->type.dtype, DType::f32);
  EXPECT_EQ(read(with_dtype("bfloat16", 4)).root().tensor->type.dtype, DType::bf16);
  EXPECT_EQ(read(with_dtype("float8_e4m3fn", 8)).root().tensor->type.float8, Float8::e4m3fn);
  EXPECT_EQ(read(with_dtype("uint16", 4)).root().tensor->type.unsupported, "uint16");
  EXPECT_NE(error_of(with_dtype("float32", 3)).find("inside its storage of 2"), std::string::npos);
}

using GlobalId = PickleGlobal::Id;

PickleGlobal found_global(const std::string& module, const std::string& name) {
  static std::deque<std::string> texts;  // the result has views of the names
  return find_pickle_global(texts.emplace_back(module), texts.emplace_back(name), "file.pt");
}

// Old files name the storages of a GPU by torch.cuda.
TEST(PickleGlobals, StoragesAndDtypesAreTorchs) {
  struct Type {
    const char* storage;
    std::vector<const char*> dtypes;
    uint64_t bytes;
    std::optional<DType> type;  // none: not supported, and named by the first of `dtypes`
    Float8 float8 = Float8::none;
  };
  const Type types[] = {{"DoubleStorage", {"float64", "double"}, 8, DType::f64},
                        {"FloatStorage", {"float32", "float"}, 4, DType::f32},
                        {"HalfStorage", {"float16", "half"}, 2, DType::f16},
                        {"BFloat16Storage", {"bfloat16"}, 2, DType::bf16},
                        {"LongStorage", {"int64", "long"}, 8, DType::i64},
                        {"IntStorage", {"int32", "int"}, 4, DType::i32},
                        {"CharStorage", {"int8"}, 1, DType::i8},
                        {"ByteStorage", {"uint8"}, 1, DType::u8},
                        {"BoolStorage", {"bool"}, 1, DType::boolean},
                        {"ShortStorage", {"int16", "short"}, 2, {}},
                        {"ComplexFloatStorage", {"complex64", "cfloat"}, 8, {}},
                        {"ComplexDoubleStorage", {"complex128", "cdouble"}, 16, {}},
                        {nullptr, {"uint16"}, 2, {}},
                        {nullptr, {"uint32"}, 4, {}},
                        {nullptr, {"uint64"}, 8, {}},
                        {nullptr, {"float8_e4m3fn"}, 1, DType::f32, Float8::e4m3fn},
                        {nullptr, {"float8_e5m2"}, 1, DType::f32, Float8::e5m2}};
  for (const char* module : {"torch", "torch.storage", "torch.cuda"}) {
    for (const Type& type : types) {
      const auto check = [&](const char* name, GlobalId id) {
        const PickleGlobal global = found_global(module, name);
        EXPECT_EQ(global.id, id) << module << "." << name;
        EXPECT_EQ(global.type.bytes, type.bytes) << name;
        EXPECT_EQ(global.type.unsupported, type.type ? "" : type.dtypes[0]) << name;
        EXPECT_EQ(global.type.dtype, type.type.value_or(global.type.dtype)) << name;
        EXPECT_EQ(global.type.float8, type.float8) << name;
        EXPECT_FALSE(global.type.untyped) << name;
      };
      if (type.storage != nullptr) check(type.storage, GlobalId::storage_type);
      for (const char* dtype : type.dtypes) check(dtype, GlobalId::dtype);
    }
    EXPECT_EQ(found_global(module, "UntypedStorage").id, GlobalId::storage_type) << module;
    EXPECT_TRUE(found_global(module, "UntypedStorage").type.untyped) << module;
    EXPECT_EQ(found_global(module, "").id, GlobalId::opaque) << module;
  }
  for (const char* name : {"FloatStorage", "float32", "UntypedStorage"})
    EXPECT_EQ(found_global("torchx", name).id, GlobalId::opaque) << name;
}

TEST(PickleGlobals, ClassesAreKnownByModuleAndName) {
  const std::tuple<const char*, const char*, GlobalId> known[] = {
      {"collections", "OrderedDict", GlobalId::ordered_dict},
      {"collections", "defaultdict", GlobalId::default_dict},
      {"builtins", "dict", GlobalId::ordered_dict},
      {"__builtin__", "dict", GlobalId::ordered_dict},
      {"builtins", "list", GlobalId::sequence},
      {"__builtin__", "list", GlobalId::sequence},
      {"builtins", "tuple", GlobalId::sequence},
      {"__builtin__", "tuple", GlobalId::sequence},
      {"torch", "Size", GlobalId::sequence},
      {"builtins", "set", GlobalId::set},
      {"__builtin__", "set", GlobalId::set},
      {"builtins", "frozenset", GlobalId::set},
      {"__builtin__", "frozenset", GlobalId::set},
      {"_codecs", "encode", GlobalId::encode},
      {"torch._utils", "_rebuild_tensor", GlobalId::rebuild_tensor},
      {"torch._utils", "_rebuild_tensor_v2", GlobalId::rebuild_tensor},
      {"torch._utils", "_rebuild_tensor_v3", GlobalId::rebuild_tensor_v3},
      {"torch._utils", "_rebuild_parameter", GlobalId::rebuild_parameter},
      {"torch._utils", "_rebuild_parameter_with_state", GlobalId::rebuild_parameter},
      {"torch._tensor", "_rebuild_from_type_v2", GlobalId::rebuild_from_type},
      {"torch", "Tensor", GlobalId::tensor_class},
      {"torch.nn.parameter", "Parameter", GlobalId::tensor_class}};
  for (const auto& [module, name, id] : known) {
    EXPECT_EQ(found_global(module, name).id, id) << module << "." << name;
    EXPECT_EQ(found_global(module, name).name, name);
    EXPECT_EQ(found_global("my_script", name).id, GlobalId::opaque) << name;
  }
  EXPECT_EQ(found_global("collections", "dict").id, GlobalId::opaque);
}

}  // namespace
}  // namespace vitrail::weights
