// SPDX-License-Identifier: Apache-2.0
// Handwritten pickles: malformed ones, and forms that only old versions of torch.save wrote.
#include "vitrail/weights/pytorch/pickle_internal.h"

#include <gtest/gtest.h>

#include <deque>
#include <optional>
#include <tuple>

#include "tests/support/messages.h"
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

std::string pickle_error(const std::string& text) {
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
    const std::string error = pickle_error(text);
    EXPECT_NE(error.find(part), std::string::npos) << error << "\n  for " << ::testing::PrintToString(text);
    EXPECT_EQ(error.rfind("file.pt", 0), 0u) << error;
  }
}

// What is below a mark belongs to the container that begins there.
TEST(Pickle, ObjectsBelowAMarkCannotBeTaken) {
  const std::string list = "]", one = "K\x01", attributes = "b", append = "a", reduce = "R", call = "(";
  for (const std::string& text : {one + call + ".", list + call + one + append + ".",
                                  global("collections", "OrderedDict") + call + ")" + reduce + "."}) {
    EXPECT_NE(pickle_error(text).find("an object on the stack"), std::string::npos) << ::testing::PrintToString(text);
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
  EXPECT_NE(pickle_error(call).find("calls another"), std::string::npos) << pickle_error(call);
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
  for (const auto& [text, part] : invalid)
    EXPECT_NE(pickle_error(text).find(part), std::string::npos) << pickle_error(text);
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
  EXPECT_NE(pickle_error(with_dtype("float32", 3)).find("inside its storage of 2"), std::string::npos);
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

// An item of a kind and with its text or number, as `kind:value`; containers list their items.
std::string shown(const PickleValue& value) {
  std::string items;
  for (const PickleValue* item : value.items) items += (items.empty() ? "" : ",") + shown(*item);
  switch (value.kind) {
    case Kind::none:
      return "N";
    case Kind::boolean:
      return value.integer == 1 ? "true" : value.integer == 0 ? "false" : "neither";
    case Kind::integer:
      return std::to_string(value.integer);
    case Kind::big_integer:
      return "big:" + std::string(value.text);
    case Kind::real:
      return "real";
    case Kind::string:
      return "s:" + std::string(value.text);
    case Kind::bytes:
      return "b:" + std::string(value.text);
    case Kind::list:
      return "[" + items + "]";
    case Kind::tuple:
      return "(" + items + ")";
    case Kind::dict:
      return "{" + items + "}";
    case Kind::set:
      return "<" + items + ">";
    case Kind::global:
      return "g:" + std::string(value.global->module) + "." + std::string(value.global->name);
    case Kind::object:
      return "o:" + std::string(value.global->name) + (items.empty() ? "" : "{" + items + "}") +
             (value.state == nullptr ? "" : "=" + shown(*value.state));
    case Kind::storage:
    case Kind::tensor:
      break;
  }
  return value.kind == Kind::tensor ? "tensor" : "storage";
}

std::string bytes_of(std::initializer_list<int> bytes) {
  std::string text;
  for (const int byte : bytes) text += static_cast<char>(byte);
  return text;
}

// Python's pickletools describes each opcode.
TEST(Pickle, EachOpcodeHasItsEffect) {
  const std::string zero(1, '\0'), ordered = global("collections", "OrderedDict"), own = global("mine", "Own");
  const std::pair<std::string, std::string> cases[] = {
      {"N", "N"},
      {"\x88", "true"},
      {"\x89", "false"},
      {"I01\n", "true"},
      {"I00\n", "false"},
      {"I1\n", "1"},
      {"I-12\n", "-12"},
      {"L7L\n", "7"},
      {"L7\n", "7"},
      {"J\x01\x02\x03\x04", "67305985"},
      {"J\xfe\xff\xff\xff", "-2"},
      {"K\xff", "255"},
      {"M\x01\x02", "513"},
      {bytes_of({0x8a, 2, 1, 0x7f}), "32513"},
      {bytes_of({0x8a, 2, 0, 0x80}), "-32768"},
      {bytes_of({0x8a, 0}), "0"},
      {bytes_of({0x8a, 8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}), "9223372036854775807"},
      {bytes_of({0x8a, 8, 0, 0, 0, 0, 0, 0, 0, 0x80}), "-9223372036854775808"},
      {bytes_of({0x8a, 9}) + "123456789", "big:123456789"},
      {bytes_of({0x8b, 1, 0, 0, 0, 0xff}), "-1"},
      {bytes_of({'G', 1, 2, 3, 4, 5, 6, 7, 8}), "real"},
      {"F1.5\n", "real"},
      {bytes_of({0x8c, 2}) + "ab", "s:ab"},
      {"U\x02"
       "ab",
       "s:ab"},
      {bytes_of({'X', 2, 0, 0, 0}) + "ab", "s:ab"},
      {bytes_of({'T', 2, 0, 0, 0}) + "ab", "s:ab"},
      {bytes_of({0x8d, 2, 0, 0, 0, 0, 0, 0, 0}) + "ab", "s:ab"},
      {"S'ab'\n", "s:ab"},
      {"S\"a'\"\n", "s:a'"},
      {"S''\n", "s:"},
      {"Sa\n", "s:a"},
      {"Vab\n", "s:ab"},
      {"C\x02"
       "ab",
       "b:ab"},
      {bytes_of({'B', 2, 0, 0, 0}) + "ab", "b:ab"},
      {bytes_of({0x8e, 2, 0, 0, 0, 0, 0, 0, 0}) + "ab", "b:ab"},
      {bytes_of({0x96, 2, 0, 0, 0, 0, 0, 0, 0}) + "ab", "b:ab"},
      {"]", "[]"},
      {")", "()"},
      {"}", "{}"},
      {"\x8f", "<>"},
      {"(K\x01K\x02l", "[1,2]"},
      {"(K\x01K\x02t", "(1,2)"},
      {"(K\x01K\x02\x91", "<1,2>"},
      {"(K\x01K\x02"
       "d",
       "{1,2}"},
      {"K\x01K\x02K\x03\x85", "(3)"},
      {"K\x01K\x02K\x03\x86", "(2,3)"},
      {"K\x01K\x02K\x03\x87", "(1,2,3)"},
      {"]K\x01"
       "aK\x02"
       "a",
       "[1,2]"},
      {"](K\x01K\x02"
       "e",
       "[1,2]"},
      {"](e", "[]"},
      {"\x8f(K\x01K\x02\x90", "<1,2>"},
      {"}K\x01K\x02sK\x03K\x04s", "{1,2,3,4}"},
      {"}(K\x01K\x02K\x03K\x04u", "{1,2,3,4}"},
      {"K\x01K\x02"
       "0",
       "1"},
      {"K\x01(K\x02K\x03"
       "1",
       "1"},
      {"K\x01(0", "1"},
      {"K\x01(K\x02"
       "00",
       "1"},
      {"K\x05"
       "2\x86",
       "(5,5)"},
      {"K\x05q\x07K\x06h\x07\x86", "(6,5)"},
      {"K\x05r\x07\x01" + std::string(2, '\0') + "K\x06j\x07\x01" + std::string(2, '\0') + "\x86", "(6,5)"},
      {"K\x05p12\nK\x06g12\n\x86", "(6,5)"},
      {"K\x05\x94K\x06\x94h" + zero + "h\x01\x87", "(6,5,6)"},
      {"K\x05q\x01K\x06q\x01h\x01", "6"},
      {"\x80\x05\x95" + std::string(8, '\x11') + "K\x05", "5"},
      {"cmine\nOwn\n", "g:mine.Own"},
      {text_of("mine") + text_of("Own") + "\x93", "g:mine.Own"},
      {ordered + ")R", "{}"},
      {own + ")R", "o:Own"},
      {own + ")\x81", "o:Own"},
      {own + ")}\x92", "o:Own"},
      {own + ")RK\x07"
             "b",
       "o:Own=7"},
      {own + ")RK\x01K\x02s", "o:Own{1,2}"},
      {own + ")R(K\x01K\x02u", "o:Own{1,2}"},
      {own + ")R(K\x01"
             "e",
       "o:Own"},
      {own + ")R(K\x01\x90", "o:Own"},
      {own + ")R)R", "o:Own"},
      {"(K\x01imine\nOwn\n", "o:Own"},
      {"(K\x05(K\x01imine\nOwn\nt", "(5,o:Own)"},
      {"(" + own + "K\x01o", "o:Own"},
      {"\x82\x07", "g:copyreg.extension"},
      {"\x83\x07\x08", "g:copyreg.extension"},
      {bytes_of({0x84, 7, 8, 9, 1}), "g:copyreg.extension"},
      {ordered + ")R}b", "{}"},
      {"\x8f}b", "<>"},
      {own + "}b", "g:mine.Own"}};
  for (const auto& [text, want] : cases) {
    const Pickle pickle = read(text + "." + "behind");
    EXPECT_EQ(shown(pickle.root()), want) << ::testing::PrintToString(text);
    EXPECT_EQ(pickle.size(), text.size() + 1) << ::testing::PrintToString(text);
  }
}

TEST(Pickle, ContainersAreMadeOfTheItemsOfTheirArgument) {
  const std::string list =
                        "](K\x01K\x02"
                        "e",
                    pairs = "](" + std::string("K\x01K\x02\x86") +
                            "](K\x03K\x04"
                            "ee";
  const auto call = [](const std::string& module, const std::string& name, const std::string& argument) {
    return shown(read(global(module, name) + "(" + argument + "tR.").root());
  };
  EXPECT_EQ(call("builtins", "list", list), "(1,2)");
  EXPECT_EQ(call("builtins", "tuple", list), "(1,2)");
  EXPECT_EQ(call("torch", "Size", "(K\x03K\x04t"), "(3,4)");
  EXPECT_EQ(call("builtins", "set", list), "<1,2>");
  EXPECT_EQ(call("builtins", "frozenset", ""), "<>");
  EXPECT_EQ(call("builtins", "tuple", ""), "()");
  EXPECT_EQ(call("builtins", "set", "K\x01"), "o:set") << "of an item that is no container";
  EXPECT_EQ(call("collections", "OrderedDict", pairs), "{1,2,3,4}");
  EXPECT_EQ(call("collections", "OrderedDict", "}(K\x01K\x02u"), "{1,2}");
  EXPECT_EQ(call("collections", "OrderedDict", "]"), "{}");
  EXPECT_EQ(call("collections", "defaultdict", global("builtins", "int")), "{}");
  EXPECT_EQ(call("_codecs", "encode", text_of("abc") + text_of("latin1")), "b:abc");
  EXPECT_EQ(call("mine", "Own", "K\x01"), "o:Own");
  EXPECT_EQ(call("torch", "Tensor", ""), "o:Tensor");
  EXPECT_EQ(call("torch", "float32", ""), "o:float32");
}

// A small file would take gigabytes: each call copies the items of a container.
TEST(Pickle, CopiedItemsAreLimited) {
  const std::string items(10'000, 'N'), list = "](" + items + "eq\x01" + "0", dict = "}(" + items + "uq\x01" + "0";
  const auto copies = [](const std::string& container, const std::string& name, int count) {
    std::string text = container + "(" + (name == "tuple" ? global("builtins", name) : global("collections", name));
    text += "q\x02" + std::string("0");
    for (int i = 0; i < count; ++i) text += "h\x02h\x01\x85R";
    return text + "l.";
  };
  EXPECT_EQ(read(copies(list, "tuple", 100)).root().items.size(), 100u);
  for (const auto& [container, name] : {std::pair(list, "tuple"), std::pair(dict, "OrderedDict")}) {
    const std::string error = pickle_error(copies(container, name, 1000));
    EXPECT_TRUE(error.ends_with("expected at most 8000000 items of containers, got more")) << error;
  }
}

TEST(Pickle, FindsTheValueOfAKey) {
  const Pickle dict = read("}(" + text_of("a") + "K\x01K\x07K\x02" + text_of("b") + "K\x03" + text_of("a") + "K\x04u.");
  EXPECT_EQ(dict.root().find("a")->integer, 4);
  EXPECT_EQ(dict.root().find("b")->integer, 3);
  EXPECT_EQ(dict.root().find("c"), nullptr);
  const Pickle object = read(global("mine", "Own") + ")R(" + text_of("a") + "K\x05u.");
  EXPECT_EQ(object.root().find("a")->integer, 5);
  const Pickle list = read("](" + text_of("a") +
                           "K\x01"
                           "e.");
  EXPECT_EQ(list.root().find("a"), nullptr) << "a list has no keys";
  EXPECT_TRUE(dict.root().has_entries());
  EXPECT_TRUE(object.root().has_entries());
  EXPECT_FALSE(list.root().has_entries());
}

TEST(Pickle, ValuesAreDescribedByTheirKind) {
  const std::pair<std::string, const char*> cases[] = {{"N", "None"},
                                                       {"\x88", "a bool"},
                                                       {"K\x01", "an integer"},
                                                       {bytes_of({0x8a, 9}) + "123456789", "a long integer"},
                                                       {"F1\n", "a float"},
                                                       {text_of("a"), "a string"},
                                                       {"C\x01"
                                                        "a",
                                                        "bytes"},
                                                       {"]", "a list"},
                                                       {")", "a tuple"},
                                                       {"}", "a dict"},
                                                       {"\x8f", "a set"},
                                                       {global("mine", "Own"), "mine.Own"},
                                                       {storage(6), "a storage"},
                                                       {global("mine", "Own") + ")R", "an object of mine.Own"},
                                                       {global(std::string(90, 'm'), std::string(90, 'n')), nullptr}};
  for (const auto& [text, want] : cases) {
    const std::string got = describe(read(text + ".").root());
    EXPECT_EQ(got, want == nullptr ? std::string(80, 'm') + "." + std::string(80, 'n') : want);
  }
  EXPECT_EQ(describe(read(tensor(storage(6), 0, integer(2), integer(1))).root()), "a tensor");
  EXPECT_STREQ(name_of(Kind::global), "a class");
  EXPECT_STREQ(name_of(Kind::object), "an object");
}

TEST(Pickle, TheErrorSaysWhatIsWrongAndWhere) {
  const std::string own = global("mine", "Own"), rebuild = global("torch._utils", "_rebuild_tensor_v2"),
                    type = global("torch", "FloatStorage");
  const std::string ended = "expected more data, got the end of the file: it is truncated or damaged";
  const std::pair<std::string, std::string> cases[] = {
      {"", "byte 0: " + ended},
      {"K", "byte 1: " + ended},
      {"M\x01", "byte 1: " + ended},
      {bytes_of({0x8c, 3}) + "ab", "byte 2: " + ended},
      {"I12", "byte 1: expected a line, got the end of the file"},
      {"\x80\x06", "byte 2: expected pickle protocol 0 to 5, got 6"},
      {".", "byte 1: expected an object on the stack, got none"},
      {"K\x01(.", "byte 4: expected an object on the stack, got none"},
      {"K\x01t", "byte 3: expected a mark on the stack, got none"},
      {"\x97", "byte 1: expected a pickle as torch.save writes it, got opcode 151"},
      {"I1x\n", "byte 4: expected an integer of 64 bits, got something else"},
      {"I\n", "byte 2: expected an integer of 64 bits, got something else"},
      {"I9223372036854775808\n", "byte 21: expected an integer of 64 bits, got something else"},
      {"gx\n", "byte 3: expected a memo index, got something else"},
      {"g-1\n", "byte 4: expected a memo index, got something else"},
      {"h\x07", "byte 2: expected an object in the memo, got none at 7"},
      {"}K\x01"
       "a",
       "byte 4: expected a list, got a dict"},
      {"]K\x01K\x02s", "byte 6: expected a dict, got a list"},
      {"](K\x01\x90", "byte 5: expected a set, got a list"},
      {"}(K\x01u", "byte 5: expected keys and values, got a key without a value"},
      {"K\x01)R", "byte 4: expected a class or function, got an integer"},
      {own + "]R", "byte 12: expected a tuple of arguments, got a list"},
      {own + "]\x81", "byte 12: expected a tuple of arguments, got a list"},
      {"K\x01K\x02\x93", "byte 5: expected a name, got an integer"},
      {"K\x01" + text_of("x") + "\x93", "byte 6: expected a module's name, got an integer"},
      {"K\x01}b", "byte 4: expected an object that has attributes, got an integer"},
      {"](o", "byte 3: expected a class and its arguments, got none"},
      {"K\x01Q", "byte 3: expected a storage's id as a tuple, got an integer"},
      {tuple(text_of("other") + type) + "Q", "byte 30: expected a storage's id, got another id"},
      {tuple(text_of("storage") + "K\x01") + "Q", "byte 14: expected a storage's type, got an integer"},
      {tuple(text_of("storage")) + "Q", "byte 12: expected a storage's type, got only 1 arguments"},
      {tuple(text_of("module") + "K\x01NN") + "Q", "byte 15: expected a module's class, got an integer"},
      {rebuild + ")R", "byte 35: expected a storage, got only 0 arguments"},
      {rebuild + "(K\x01tR", "byte 38: expected a storage, got an integer"}};
  for (const auto& [text, want] : cases)
    EXPECT_EQ(pickle_error(text), "file.pt: pickle, " + want) << ::testing::PrintToString(text);
}

TEST(Pickle, StoragesHaveTheirKeyTypeAndSize) {
  const auto id = [](const std::string& type, const std::string& key, int64_t count, const std::string& more = "") {
    return tuple(text_of("storage") + global("torch", type) + text_of(key) + text_of("cpu") + integer(count) + more) +
           "Q";
  };
  const Pickle pickle = read("(" + id("FloatStorage", "a", 6) + id("LongStorage", "b", 7, "N") +
                             id("HalfStorage", "c", 9, tuple(text_of("v") + integer(4) + integer(2))) + "t.");
  const std::vector<PickledStorage>& storages = pickle.storages();
  ASSERT_EQ(storages.size(), 3u);
  const std::tuple<const char*, DType, int64_t, int64_t> want[] = {
      {"a", DType::f32, 0, 6}, {"b", DType::i64, 0, 7}, {"c", DType::f16, 4, 2}};
  for (size_t i = 0; i < 3; ++i) {
    const auto& [key, dtype, offset, count] = want[i];
    for (const PickledStorage& storage : {storages[i], pickle.root().items[i]->tensor->storage}) {
      EXPECT_EQ(storage.key, key);
      EXPECT_EQ(storage.type.dtype, dtype);
      EXPECT_EQ(storage.offset, offset);
      EXPECT_EQ(storage.count, count);
    }
  }
  EXPECT_EQ(shown(read(tuple(text_of("module") + global("mine", "Own") + "NN") + "Q.").root()), "g:mine.Own");
  EXPECT_EQ(shown(read(tuple(text_of("storage") + global("mine", "Storage") + "NNN") + "Q.").root()), "o:Storage");
}

TEST(Pickle, TensorsHaveTheirOffsetSizeAndStrides) {
  const Pickle pickle = read(tensor(storage(20), 3, integer(2) + integer(4), integer(8) + integer(2)));
  const PickledTensor& made = *pickle.root().tensor;
  EXPECT_EQ(made.offset, 3);
  EXPECT_EQ(made.shape, (Shape{2, 4}));
  EXPECT_EQ(made.strides, (Shape{8, 2}));
  EXPECT_EQ(made.storage.key, "0");
  EXPECT_EQ(made.storage.count, 20);
  EXPECT_EQ(made.type.dtype, DType::f32);
  const auto ends_at = [](int64_t count) {
    return pickle_error(tensor(storage(count), 3, integer(2) + integer(4), integer(8) + integer(2)));
  };
  EXPECT_EQ(ends_at(18), "no error") << "3 + 8 + 6 is the last element";
  EXPECT_TRUE(testing::contains(ends_at(17),
                                "expected a tensor inside its storage of 17 elements, got shape [2, 4], strides "
                                "[8, 2], offset 3"));
  EXPECT_EQ(pickle_error(tensor(storage(1), 5, integer(0) + integer(4), integer(8) + integer(2))), "no error")
      << "no elements";
  EXPECT_EQ(pickle_error(tensor(storage(1), 0, integer(1 << 20), integer(0))), "no error");
  EXPECT_TRUE(testing::contains(pickle_error(tensor(storage(1), 0, integer((1 << 20) + 1), integer(0))),
                                "expected a tensor that repeats at most 1048576 elements, got shape [1048577]"));
  EXPECT_EQ(pickle_error(tensor(storage(int64_t{1} << 21), 0, integer(1 << 21), integer(0))), "no error")
      << "no more than the storage has";
  EXPECT_EQ(pickle_error(tensor(storage(int64_t{1} << 56), 0, integer(1), integer(1))), "no error");
  EXPECT_TRUE(testing::contains(pickle_error(tensor(storage((int64_t{1} << 56) + 1), 0, integer(1), integer(1))),
                                "expected a storage's size from 0 to 2^56, got 72057594037927937"));
  EXPECT_TRUE(testing::contains(pickle_error(tensor(storage(9), 0, integer(3), integer(-1))),
                                "expected a tensor's strides from 0 to 2^56, got -1"));
  EXPECT_TRUE(testing::contains(pickle_error(tensor(storage(9), 0, integer(-3), integer(1))),
                                "expected a tensor's size from 0 to 2^56, got -3"));
  EXPECT_TRUE(testing::contains(pickle_error(tensor(storage(9), -1, integer(3), integer(1))),
                                "expected a tensor's offset from 0 to 2^56, got -1"));
  std::string ones;
  for (int i = 0; i < 8; ++i) ones += integer(1);
  EXPECT_EQ(pickle_error(tensor(storage(1), 0, ones, ones)), "no error");
  EXPECT_TRUE(testing::contains(pickle_error(tensor(storage(1), 0, ones + integer(1), ones + integer(1))),
                                "expected at most 8 axes, got 9"));
  EXPECT_TRUE(testing::contains(pickle_error(tensor(storage(1), 0, ones, integer(1))),
                                "expected a stride for each axis, got [1]"));
}

TEST(Pickle, RebuildFunctionsGiveTheirTensorOrTheObjectInIt) {
  const std::string made = tensor(storage(6), 0, integer(2), integer(1)), of_tensor = made.substr(0, made.size() - 1),
                    own = global("mine", "Own") + ")R";
  const auto result = [](const std::string& module, const std::string& name, const std::string& arguments) {
    return shown(read(global(module, name) + "(" + arguments + "tR.").root());
  };
  for (const char* name : {"_rebuild_parameter", "_rebuild_parameter_with_state"}) {
    const std::string parameter = global("torch._utils", name);
    EXPECT_NE(pickle_error(parameter + "(K\x01tR.").find("expected a parameter's tensor, got an integer"),
              std::string::npos);
    EXPECT_NE(pickle_error(parameter + ")R.").find("expected a parameter's tensor, got only 0 arguments"),
              std::string::npos);
    EXPECT_EQ(result("torch._utils", name, own + "\x88N"), "o:Own");
    EXPECT_EQ(result("torch._utils", name, of_tensor + "\x88N"), "tensor");
  }
  EXPECT_EQ(result("torch._utils", "_rebuild_tensor_v2", own + "K\x01"), "o:Own");
  const std::string function = global("torch._utils", "_rebuild_tensor_v2"), type = global("torch", "Tensor");
  EXPECT_EQ(result("torch._tensor", "_rebuild_from_type_v2",
                   function + type + tuple(storage(6) + integer(0) + tuple(integer(2)) + tuple(integer(1))) + "}"),
            "tensor");
  EXPECT_EQ(result("torch._tensor", "_rebuild_from_type_v2", global("mine", "make") + type + ")N"), "o:make");
  const std::string from_type = global("torch._tensor", "_rebuild_from_type_v2");
  EXPECT_NE(pickle_error(from_type + "(K\x01" + type + ")NtR.").find("expected a function, got an integer"),
            std::string::npos);
  EXPECT_NE(pickle_error(from_type + "(" + function + type + "NtR.").find("expected a tuple of arguments, got None"),
            std::string::npos);
}

TEST(Pickle, UntypedStoragesWithoutATypeAreBytes) {
  const std::string untyped =
      tuple(text_of("storage") + global("torch", "UntypedStorage") + text_of("0") + text_of("cpu") + integer(8)) + "Q";
  const Pickle pickle = read(tensor(untyped, 1, integer(7), integer(1)));
  EXPECT_EQ(pickle.root().tensor->type.dtype, DType::u8);
  EXPECT_FALSE(pickle.root().tensor->type.untyped);
  EXPECT_TRUE(pickle.root().tensor->storage.type.untyped);
  EXPECT_NE(pickle_error(tensor(untyped, 2, integer(7), integer(1))).find("inside its storage of 8"),
            std::string::npos);
  const auto v3 = [](const std::string& of, const std::string& dtype) {
    return global("torch._utils", "_rebuild_tensor_v3") +
           tuple(of + integer(0) + tuple(integer(2)) + tuple(integer(1)) + "\x89N" + dtype) + "R.";
  };
  EXPECT_NE(
      pickle_error(v3(storage(6), global("torch", "float32"))).find("expected an untyped storage, got a typed one"),
      std::string::npos);
  EXPECT_EQ(shown(read(v3(untyped, global("mine", "Own"))).root()), "o:Own");
  EXPECT_NE(pickle_error(v3(untyped, "N")).find("expected a dtype, got None"), std::string::npos);
}

}  // namespace
}  // namespace vitrail::weights
