// SPDX-License-Identifier: Apache-2.0
// What training scripts store beside the weights, and where the weights are in a checkpoint.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "tests/support/torch_save.h"
#include "vitrail/base/error.h"
#include "vitrail/base/zip_writer_internal.h"
#include "vitrail/weights/checkpoint.h"
#include "vitrail/weights/checkpoint_params_internal.h"

namespace vitrail::weights {
namespace {

using testing::pickled_call;
using testing::pickled_dict;
using testing::pickled_global;
using testing::pickled_text;
using testing::TorchSave;
using Tensors = std::vector<std::pair<std::string, Tensor>>;

// The keys by which timm's family is recognised, and one more.
Tensors timm_tensors(uint64_t seed = 1) {
  return {{"patch_embed.proj.weight", Tensor::randn({4, 3, 2, 2}, seed)},
          {"blocks.0.attn.qkv.weight", Tensor::randn({12, 4}, seed + 1)},
          {"blocks.0.norm1.weight", Tensor::randn({4}, seed + 2)},
          {"head.weight", Tensor::randn({5, 4}, seed + 3)}};
}

Checkpoint open(const std::string& file) {
  const auto* bytes = reinterpret_cast<const std::byte*>(file.data());
  return Checkpoint::open(FileBytes::hold({bytes, bytes + file.size()}, "file.pth"));
}

std::string torch_error(const std::string& file) {
  try {
    open(file);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

void expect_tensors(const Checkpoint& checkpoint, const Tensors& expected, const std::string& what) {
  for (const auto& [name, tensor] : expected) {
    ASSERT_TRUE(checkpoint.has(name)) << what << ": " << name;
    const Tensor actual = checkpoint.tensor(name).contiguous();
    ASSERT_EQ(actual.shape(), tensor.shape()) << what << ": " << name;
    EXPECT_EQ(std::memcmp(actual.raw(), tensor.raw(), static_cast<size_t>(tensor.numel()) * 4), 0) << what;
  }
}

// Pickled values of unknown classes, by every opcode that makes or changes an object.
std::vector<std::string> foreign_values() {
  const std::string dtype = pickled_call("numpy", "dtype", pickled_text("f8") + "\x89\x88") + "(K\x03" +
                            pickled_text("<") + "NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK" + std::string(1, '\0') + "tb";
  const std::string config = pickled_global("__main__", "Config");
  return {
      pickled_call("numpy.core.multiarray", "scalar", dtype + pickled_text("12345678")),
      pickled_call("numpy._core.multiarray", "scalar",
                   dtype + pickled_call("_codecs", "encode", pickled_text("12345678") + pickled_text("latin1"))),
      pickled_call("collections", "Counter", pickled_dict({{"a", "K\x02"}})),
      pickled_call("collections", "defaultdict", pickled_global("builtins", "int")) + pickled_text("a") + "K\x01s",
      pickled_call("collections", "deque", "]K\x05") + "(K\x01K\x02" + "e",
      pickled_call("argparse", "Namespace") + pickled_dict({{"lr", "K\x01"}}) + "b",
      pickled_call("pathlib", "PosixPath", pickled_text("/") + pickled_text("data")),
      pickled_call("datetime", "datetime", "C\x0a" + std::string(10, '\x01')),
      pickled_call("torch", "device", pickled_text("cpu")),
      pickled_call("omegaconf.dictconfig", "DictConfig") + pickled_dict({{"_content", "}"}}) + "b",
      pickled_call("copyreg", "_reconstructor", config + pickled_global("builtins", "object") + "N") + "}b",
      pickled_call("builtins", "type", "N"),
      pickled_call("functools", "partial", pickled_global("torch.optim.adamw", "AdamW")) + "(" +
          pickled_global("torch.optim.adamw", "AdamW") + ")" + pickled_dict({{"lr", "K\x01"}}) + "Ntb",
      pickled_call("operator", "itemgetter", "K\x01"),
      pickled_call("operator", "attrgetter", pickled_text("a")),
      pickled_call("my_script", "make") + "(tR",  // a result that is called
      config + ")\x81",                           // NEWOBJ
      config + ")}\x92" + "}b",                   // NEWOBJ_EX
      "(" + config + "K\x01o",                    // OBJ
      "(K\x01i__main__\nConfig\n",                // INST
      std::string("\x82\x07") + ")R",
      std::string("\x83\x07\x01") + ")R",
      std::string("\x84\x07\x01\x01\x01") + ")R",
      config + ")R(K\x01\x90",   // ADDITEMS
      config + ")RK\x01" + "a",  // APPEND
      pickled_call("torch._utils", "_rebuild_parameter", config + ")R\x89N"),
      "S'text of protocol 0'\n",
  };
}

TEST(TorchValues, ObjectsBesideTheWeightsAreInert) {
  for (const std::string& value : foreign_values()) {
    for (const bool before : {false, true}) {
      TorchSave save;
      const std::pair<std::string, std::string> model{"model", save.state_dict(timm_tensors())}, extra{"extra", value};
      const std::string root = before ? pickled_dict({extra, model}) : pickled_dict({model, extra});
      ASSERT_NO_THROW(expect_tensors(open(save.file(root)), timm_tensors(), ::testing::PrintToString(value)))
          << ::testing::PrintToString(value);
    }
  }
}

TEST(TorchValues, GlobalsThatRunCodeRefuseTheFile) {
  const std::pair<const char*, const char*> globals[] = {{"os", "system"},
                                                         {"posix", "system"},
                                                         {"nt", "system"},
                                                         {"os.path", "join"},
                                                         {"subprocess", "Popen"},
                                                         {"sys", "exit"},
                                                         {"builtins", "eval"},
                                                         {"builtins", "exec"},
                                                         {"builtins", "compile"},
                                                         {"builtins", "getattr"},
                                                         {"builtins", "__import__"},
                                                         {"builtins", "open"},
                                                         {"__builtin__", "execfile"},
                                                         {"builtins", "eval.__call__"},
                                                         {"runpy", "run_path"},
                                                         {"socket", "socket"},
                                                         {"shutil", "rmtree"},
                                                         {"importlib", "import_module"},
                                                         {"importlib.util", "find_spec"},
                                                         {"pty", "spawn"},
                                                         {"ctypes", "CDLL"},
                                                         {"pickle", "loads"},
                                                         {"_pickle", "loads"},
                                                         {"dill", "loads"},
                                                         {"joblib", "load"},
                                                         {"operator", "call"},
                                                         {"_operator", "methodcaller"},
                                                         {"functools", "reduce"},
                                                         {"torch", "load"},
                                                         {"torch.serialization", "load"},
                                                         {"torch.jit", "load"},
                                                         {"torch", "hub.os.system"},
                                                         {"torch", "os.system"},
                                                         {"torch.storage", "_load_from_bytes"},
                                                         {"webbrowser", "open"},
                                                         {"bdb", "Bdb.run"},
                                                         {"pip", "main"},
                                                         {"numpy", "load"},
                                                         {"asyncio", "run"},
                                                         {"timeit", "timeit"},
                                                         {"cProfile", "run"},
                                                         {"types", "FunctionType"},
                                                         {"marshal", "loads"}};
  for (const auto& [module, name] : globals) {
    for (const bool called : {false, true}) {
      TorchSave save;
      const std::string global = called ? pickled_call(module, name, pickled_text("id")) : pickled_global(module, name);
      const std::string model = save.state_dict(timm_tensors());
      const std::string error = torch_error(save.file(pickled_dict({{"model", model}, {"extra", global}})));
      EXPECT_NE(error.find(std::string(module) + "." + name + ", which is refused"), std::string::npos)
          << module << "." << name << ": " << error;
    }
  }
}

// A partial() is not called, but what it would call is refused by its own name.
TEST(TorchValues, APartialOfWhatRunsCodeRefusesTheFile) {
  TorchSave save;
  const std::string call =
      pickled_call("functools", "partial", pickled_global("os", "system") + pickled_text("id")) + ")R";
  const std::string error =
      torch_error(save.file(pickled_dict({{"model", save.state_dict(timm_tensors())}, {"x", call}})));
  EXPECT_TRUE(testing::contains(error, "os.system, which is refused")) << error;
}

TEST(TorchValues, NamesThatOnlyResembleOnesThatRunCodeAreRead) {
  const std::pair<const char*, const char*> globals[] = {{"os_helpers", "Config"},
                                                         {"my.os", "Config"},
                                                         {"system", "System"},
                                                         {"evaluation", "eval"},
                                                         {"builtins", "evaluate"},
                                                         {"builtins", "complex"},
                                                         {"torch", "loader"},
                                                         {"socketry", "Options"},
                                                         {"numpy", "loadtxt"},
                                                         {"types", "SimpleNamespace"},
                                                         {"functools", "partially"},
                                                         {"code.config", "Config"},
                                                         {"torch", ""},
                                                         {"builtins", ""},
                                                         {"joblib", "load "},
                                                         {"joblib", " load"}};
  for (const auto& [module, name] : globals) {
    TorchSave save;
    const std::string model = save.state_dict(timm_tensors());
    EXPECT_EQ(torch_error(save.file(pickled_dict({{"model", model}, {"extra", pickled_call(module, name)}}))),
              "no error")
        << module << "." << name;
  }
}

TEST(TorchValues, AnObjectWhereATensorIsNeededIsAnErrorThatNamesIt) {
  TorchSave save;
  Tensors tensors = timm_tensors();
  tensors.pop_back();
  const std::string array = pickled_call("numpy.core.multiarray", "_reconstruct");
  std::string dict = save.state_dict(tensors, "net.");
  dict += "(" + pickled_text("net.head.weight") + array + pickled_text("net._extra_state") + array + "u";
  Checkpoint checkpoint = open(save.file(dict));
  checkpoint.strip_model_prefix();
  CheckpointParams params(std::make_shared<const Checkpoint>(std::move(checkpoint)), KeyMap::builtin("timm"));
  for (const auto& [name, tensor] : tensors) params.get(name, tensor.shape(), {});
  EXPECT_NO_THROW(params.finish()) << "objects that nobody asks for";
  params.get("head.weight", {5, 4}, {});
  try {
    params.finish();
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what())
                  .find("head.weight: expected a tensor, got an object of numpy.core.multiarray._reconstruct"),
              std::string::npos)
        << error.what();
  }
}

// A wrapper's prefix is removed from its name as from those of the tensors.
TEST(TorchValues, AnObjectInAWrapperHasItsNameInTheModel) {
  TorchSave save;
  Tensors tensors = timm_tensors();
  tensors.pop_back();
  std::string dict = save.state_dict(tensors, "module.");
  dict += "(" + pickled_text("module.head.weight") + pickled_call("numpy", "ndarray") + "u";
  CheckpointParams params(std::make_shared<const Checkpoint>(open(save.file(dict))), KeyMap::builtin("timm"));
  params.get("head.weight", {5, 4}, {});
  const std::string error = testing::error_of([&] { params.finish(); });
  EXPECT_TRUE(testing::contains(error, "head.weight: expected a tensor, got an object of numpy.ndarray")) << error;
}

// The other bit, "conj", does not change real numbers.
TEST(TorchValues, ALazilyNegatedTensorIsAnErrorWhereItIsNeeded) {
  const auto file_of = [](const std::string& metadata) {
    TorchSave save;
    std::string tensor = save.tensor(Tensor::full({2}, 1));
    EXPECT_TRUE(tensor.ends_with("tR"));
    tensor.insert(tensor.size() - 2, metadata);
    return save.file(pickled_dict({{"a", tensor}, {"b", save.tensor(Tensor::full({2}, 3))}}));
  };
  const Checkpoint negated = open(file_of(pickled_dict({{"neg", "\x88"}})));
  EXPECT_EQ(negated.tensor("b").data<float>()[0], 3);
  EXPECT_TRUE(testing::contains(testing::error_of([&] { negated.tensor("a"); }),
                                "got a lazily negated tensor (torch._neg_view); save tensor.resolve_neg()"));
  for (const std::string& other : {std::string("}"), pickled_dict({{"neg", "\x89"}}), pickled_dict({{"conj", "\x88"}})})
    EXPECT_EQ(open(file_of(other)).tensor("a").data<float>()[0], 1);
}

TEST(TorchValues, AModuleInsideACheckpointIsNamed) {
  TorchSave save;
  const std::string module = pickled_global("timm.models.vision_transformer", "VisionTransformer") + ")\x81" +
                             pickled_dict({{"_parameters", save.state_dict({{"cls_token", Tensor::zeros({1})}})}}) +
                             "b";
  const std::string error = torch_error(save.file(pickled_dict({{"epoch", "K\x03"}, {"net", module}})));
  EXPECT_NE(error.find("a whole module, an object of timm.models.vision_transformer.VisionTransformer under \"net\""),
            std::string::npos)
      << error;
}

TEST(TorchValues, TheAverageIsUsedAndTheChoiceIsSaid) {
  for (const char* key : {"model_ema", "ema", "state_dict_ema", "ema_state_dict", "swa_model"}) {
    for (const bool first : {false, true}) {
      TorchSave save;
      const std::string model = save.state_dict(timm_tensors(10));
      const std::string average = save.state_dict(timm_tensors(20), "module.");
      const testing::Warnings warnings;
      const std::string root =
          first ? pickled_dict({{key, average}, {"model", model}}) : pickled_dict({{"model", model}, {key, average}});
      expect_tensors(open(save.file(root)), timm_tensors(20), key);
      ASSERT_EQ(warnings.messages.size(), 1u) << key;
      EXPECT_EQ(warnings.messages[0],
                str("file.pth: uses the weights under \"", key, "\"; the file also has weights under \"model\""));
    }
  }
}

TEST(TorchValues, MomentsAndGradientsAreNoWeights) {
  for (const char* key : {"exp_avg", "optimizer", "grads", "opt", "momentum_buffer"}) {
    for (const char* inner : {"", "exp_avg"}) {
      TorchSave save;
      const std::string moments = save.state_dict(timm_tensors(20)), model = save.state_dict(timm_tensors(10));
      const auto state_of = [&](const std::string& dict) {
        return *inner ? pickled_dict({{"state", pickled_dict({{inner, dict}})}}) : dict;
      };
      const std::string state = state_of(moments);
      const testing::Warnings warnings;
      expect_tensors(open(save.file(pickled_dict({{key, state}, {"net", model}}))), timm_tensors(10), key);
      EXPECT_TRUE(warnings.messages.empty()) << key;
      TorchSave alone;
      const std::string dict = state_of(alone.state_dict(timm_tensors(20)));
      const std::string error = torch_error(alone.file(pickled_dict({{key, dict}})));
      EXPECT_TRUE(testing::contains(error, "expected a dict of tensors")) << key << ": " << error;
    }
  }
}

TEST(TorchValues, BigEndianFilesAreErrors) {
  TorchSave save;
  std::string file = save.file(pickled_dict({{"model", save.state_dict(timm_tensors())}}));
  EXPECT_EQ(torch_error(file), "no error");
  const std::string little = "little_endian";
  const size_t value = file.find('\x88', file.find(little));
  ASSERT_NE(value, file.npos);
  file[value] = '\x89';  // False
  EXPECT_TRUE(testing::contains(torch_error(file), "expected little-endian data")) << torch_error(file);
}

// The same order for a known and for an unknown family.
TEST(TorchValues, OfSeveralWrapperKeysTheFirstCounts) {
  const std::vector<std::string> keys{"state_dict_ema",   "model_ema", "state_dict", "model",
                                      "model_state_dict", "module",    "teacher",    "student"};
  const testing::Warnings warnings;
  for (size_t i = 0; i + 1 < keys.size(); ++i) {
    TorchSave save, of_known;
    const Tensors one{{"some.weight", Tensor::full({2}, 1)}}, two{{"some.weight", Tensor::full({2}, 2)}};
    const std::string unknown = pickled_dict({{keys[i + 1], save.state_dict(two)}, {keys[i], save.state_dict(one)}});
    expect_tensors(open(save.file(unknown)), one, keys[i]);
    const std::string known = pickled_dict(
        {{keys[i + 1], of_known.state_dict(timm_tensors(20))}, {keys[i], of_known.state_dict(timm_tensors(10))}});
    expect_tensors(open(of_known.file(known)), timm_tensors(10), keys[i]);
  }
}

TEST(TorchValues, TheStateDictIsFoundUnderAnyKey) {
  const testing::Warnings warnings;
  for (const char* key : {"net", "weights", "params", "generator", "backbone"}) {
    TorchSave save;
    const std::string optimizer = pickled_dict({{"state", save.state_dict({{"exp_avg", Tensor::zeros({9})}})}});
    const std::string model = save.state_dict(timm_tensors());
    const std::string root = pickled_dict({{"optimizer", optimizer}, {"run", pickled_dict({{key, model}})}});
    expect_tensors(open(save.file(root)), timm_tensors(), key);
    expect_tensors(open(save.file("(K\x01" + root + "t")), timm_tensors(), key);
  }
  EXPECT_TRUE(warnings.messages.empty());
}

using testing::contains;

std::string tuple_of(const std::string& items) { return "(" + items + "t"; }
std::string number(int64_t value) { return "I" + std::to_string(value) + "\n"; }

// A storage of a torch type, and a tensor of it.
std::string storage_of(const std::string& type, const std::string& key, int64_t count, const std::string& view = "") {
  return tuple_of(pickled_text("storage") + pickled_global("torch", type) + pickled_text(key) + pickled_text("cpu") +
                  number(count) + view) +
         "Q";
}
std::string tensor_of(const std::string& storage, int64_t offset, const std::string& shape,
                      const std::string& strides) {
  return pickled_call("torch._utils", "_rebuild_tensor_v2",
                      storage + number(offset) + tuple_of(shape) + tuple_of(strides) + "\x89N");
}

const std::string kPreamble("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80\x02M\xe9\x03.", 21);

std::string system_of(const std::string& little_endian) {
  return "\x80\x02" + pickled_dict({{"protocol_version", "M\xe9\x03"}, {"little_endian", little_endian}}) + ".";
}

std::string little(uint64_t value) { return {reinterpret_cast<const char*>(&value), 8}; }

// The stream of torch.save: what comes before the objects, the objects, and the keys and contents of the storages.
std::string stream_of(const std::string& root, const std::string& keys, const std::string& storages) {
  return kPreamble + system_of("\x88") + "\x80\x02" + root + ".\x80\x02" + keys + "." + storages;
}

TEST(TorchStream, StoragesFollowInTheOrderOfTheirKeys) {
  const std::string root = pickled_dict(
      {{"a", tensor_of(storage_of("ByteStorage", "7", 3), 1, number(2), number(1))},
       {"b", tensor_of(storage_of("ShortStorage", "x", 2), 0, number(2), number(1))},
       {"c", tensor_of(storage_of("IntStorage", "9", 2), 0, number(2), number(1))},
       {"d", tensor_of(storage_of("ByteStorage", "7", 3, tuple_of(pickled_text("v") + number(2) + number(1))), 0,
                       number(1), number(1))},
       {"e", tensor_of(storage_of("ByteStorage", "7", 3), 0, number(3), number(0))},
       {"f", tensor_of(storage_of("ByteStorage", "gone", 1), 0, number(1), number(1))}});
  const std::string keys = "](" + pickled_text("9") + pickled_text("x") + pickled_text("7") + "e";
  const std::string whole =
      stream_of(root, keys, little(2) + std::string("\1\0\0\0\2\1\0\0", 8) + little(2) + "abcd" + little(3) + "\5\6\7");
  EXPECT_TRUE(
      contains(torch_error(whole.substr(0, whole.size() - 1)), "the end of the file after 2 bytes: it is truncated"));
  const Checkpoint checkpoint = open(whole);
  EXPECT_EQ(checkpoint.names(), (std::vector<std::string>{"a", "b", "c", "d", "e", "f"}));
  EXPECT_EQ(checkpoint.tensor("a").data<uint8_t>()[0], 6);
  EXPECT_EQ(checkpoint.tensor("a").data<uint8_t>()[1], 7);
  EXPECT_EQ(checkpoint.tensor("c").contiguous().data<int32_t>()[0], 1);
  EXPECT_EQ(checkpoint.tensor("c").contiguous().data<int32_t>()[1], 258);
  EXPECT_EQ(checkpoint.tensor("d").data<uint8_t>()[0], 7);
  EXPECT_EQ(checkpoint.tensor("e").strides(), Shape{0});
  EXPECT_EQ(checkpoint.tensor("e").contiguous().data<uint8_t>()[2], 5);
  EXPECT_EQ(checkpoint.info("b").unsupported_dtype, "int16");
  EXPECT_ERROR(testing::error_of([&] { checkpoint.tensor("b"); }), "file.pth: b", "int16");
  EXPECT_ERROR(testing::error_of([&] { checkpoint.tensor("f"); }), "file.pth: f", "none");
}

TEST(TorchStream, AStorageMustHaveWhatItsTensorsNeed) {
  const auto error = [](int64_t count, int64_t stored) {
    const std::string root =
        pickled_dict({{"a", tensor_of(storage_of("IntStorage", "0", count), 0, number(1), number(1))}});
    const Checkpoint checkpoint =
        open(stream_of(root, "](" + pickled_text("0") + "e",
                       little(static_cast<uint64_t>(stored)) + std::string(static_cast<size_t>(4 * stored), '\0')));
    return testing::error_of([&] { checkpoint.tensor("a"); });
  };
  EXPECT_ERROR(error(3, 2), "file.pth: a", "8 bytes");
  const std::string view = pickled_dict(
      {{"a", tensor_of(storage_of("IntStorage", "0", 9, tuple_of(pickled_text("v") + number(2) + number(2))), 0,
                       number(1), number(1))}});
  const Checkpoint checkpoint =
      open(stream_of(view, "](" + pickled_text("0") + "e", little(3) + std::string(12, '\0')));
  EXPECT_ERROR(testing::error_of([&] { checkpoint.tensor("a"); }), "file.pth: a", "12 bytes");
}

TEST(TorchStream, TheErrorSaysWhatIsWrong) {
  const std::string root = pickled_dict({{"a", tensor_of(storage_of("IntStorage", "0", 2), 0, number(2), number(1))}}),
                    keys = "](" + pickled_text("0") + "e";
  const std::pair<std::string, std::string> cases[] = {
      {"\x80\x02K\x01." + std::string(9, '.'), "a file of torch.save, got another pickle"},
      {"\x80\x02\x8a\x0a"
       "0123456789." +
           std::string(9, '.'),
       "a file of torch.save, got another pickle"},
      {kPreamble.substr(0, 15) + "\x80\x02M\xea\x03." + system_of("\x88"), "torch.save's protocol 1001, got another"},
      {kPreamble.substr(0, 15) + "\x80\x02N." + system_of("\x88"), "torch.save's protocol 1001, got another"},
      {kPreamble + system_of("\x89"), "little-endian data, got another byte order"},
      {kPreamble + system_of("K\x01"), "little-endian data, got another byte order"},
      {kPreamble + "\x80\x02}.", "little-endian data, got another byte order"},
      {stream_of(root, "N", ""), "a list of storage keys, got None"},
      {stream_of(root,
                 "](K\x01"
                 "e",
                 ""),
       "a storage's key as a string, got an integer"},
      {stream_of(root, "](" + pickled_text("1") + "e", ""), "keys of known storages, got another"},
      {stream_of(root, keys, std::string(7, '\0')), "another storage, got the end of the file: it is truncated"},
      {stream_of(root, keys, little(3) + std::string(11, '\0')),
       "3 elements in a storage, got the end of the file after 11 bytes: it is truncated"},
      {stream_of(root, keys, little(uint64_t{1} << 62)),
       "4611686018427387904 elements in a storage, got the end of the file after 0 bytes: it is truncated"},
      {stream_of(pickled_dict({{"a", tensor_of(storage_of("IntStorage", "0", 2), 0, number(2), number(1))},
                               {"b", storage_of("LongStorage", "0", 2)}}),
                 keys, ""),
       "one element type for a storage, got two for \"0\""}};
  for (const auto& [file, want] : cases) EXPECT_EQ(torch_error(file), "file.pth: expected " + want);
  EXPECT_EQ(torch_error(stream_of(root, keys, little(2) + std::string(8, '\0'))), "no error");
}

TEST(TorchStream, BeginsWithAPickleOfProtocolTwoToFive) {
  const std::string known = "file.pth: expected a file of torch.save, got another pickle";
  for (const char protocol : {'\2', '\3', '\4', '\5'})
    EXPECT_EQ(torch_error(std::string("\x80") + protocol + "N.."), known);
  for (const char protocol : {'\0', '\1', '\6'})
    EXPECT_TRUE(contains(torch_error(std::string("\x80") + protocol + "N.."), "got an unknown format"))
        << int{protocol};
  EXPECT_TRUE(contains(torch_error("\x80\x02N."), "got an unknown format")) << "too short";
}

TEST(TorchValues, ADictOfTensorsWinsByItsKeyAndThenByItsSize) {
  const testing::Warnings warnings;
  const auto one = [](TorchSave& save, const char* name, int count) {
    Tensors tensors;
    for (int i = 0; i < count; ++i) tensors.emplace_back(name + std::to_string(i), Tensor::zeros({1}));
    return save.state_dict(tensors);
  };
  TorchSave save;
  EXPECT_EQ(open(save.file(pickled_dict(
                     {{"few", one(save, "a", 2)}, {"many", one(save, "b", 3)}, {"equal", one(save, "c", 3)}})))
                .names(),
            (std::vector<std::string>{"b0", "b1", "b2"}));
  TorchSave nested;
  EXPECT_EQ(open(nested.file(pickled_dict(
                     {{"many", one(nested, "a", 5)}, {"x", pickled_dict({{"model", one(nested, "b", 1)}})}})))
                .names(),
            std::vector<std::string>{"b0"});
  TorchSave list;
  EXPECT_EQ(open(list.file("](" + one(list, "a", 1) + one(list, "b", 2) + "e")).names(),
            (std::vector<std::string>{"b0", "b1"}));
  TorchSave without;
  EXPECT_TRUE(contains(
      torch_error(without.file(pickled_dict({{"lr", "K\x01"}}))),
      "file.pth: expected a dict of tensors, or one under a key such as \"state_dict\" or \"model\", got a dict"));
  EXPECT_ERROR(torch_error(without.file(pickled_call("mine", "Net"))), "file.pth",
               "an object of mine.Net; save its weights instead: torch.save(model.state_dict(), \"weights.pth\")");
  EXPECT_TRUE(warnings.messages.empty());
}

TEST(TorchValues, DictsAreFoundFourLevelsDeep) {
  for (const int levels : {4, 5}) {
    TorchSave save;
    std::string root = save.state_dict({{"some.weight", Tensor::zeros({1})}});
    for (int i = 0; i < levels; ++i) root = pickled_dict({{"inner" + std::to_string(i), root}});
    EXPECT_EQ(torch_error(save.file(root)) == "no error", levels == 4) << levels;
  }
}

TEST(TorchValues, OfEqualKeysTheLastCountsInItsPlace) {
  TorchSave save;
  const Tensor one = Tensor::full({1}, 1), two = Tensor::full({1}, 2), three = Tensor::full({1}, 3);
  const std::string root = "}(" + pickled_text("a") + save.tensor(one) + pickled_text("b") + save.tensor(two) +
                           "K\x05" + save.tensor(one) + pickled_text("a") + save.tensor(three) + pickled_text("epoch") +
                           "K\x01" + pickled_text("o") + pickled_call("mine", "Own") + "u";
  const Checkpoint checkpoint = open(save.file(root));
  EXPECT_EQ(checkpoint.names(), (std::vector<std::string>{"b", "a"}));
  EXPECT_EQ(checkpoint.tensor("a").data<float>()[0], 3);
  EXPECT_EQ(checkpoint.objects(), (std::map<std::string, std::string>{{"o", "mine.Own"}}));
}

TEST(TorchValues, TheChoiceOfOneOfThreeNamesThePaths) {
  TorchSave save;
  const testing::Warnings warnings;
  const std::string root = pickled_dict({{"student", save.state_dict(timm_tensors(1))},
                                         {"run", pickled_dict({{"teacher", save.state_dict(timm_tensors(5))}})},
                                         {"list", "](" + save.state_dict(timm_tensors(9)) + "e"}});
  expect_tensors(open(save.file(root)), timm_tensors(9), "list/0");
  ASSERT_EQ(warnings.messages.size(), 1u);
  EXPECT_EQ(
      warnings.messages[0],
      "file.pth: uses the weights under \"list/0\"; the file also has weights under \"run/teacher\", \"student\"");
}

// The archive of torch.save, with these entries.
std::filesystem::path zip_of(const std::vector<std::pair<std::string, std::string>>& entries) {
  const auto path = testing::scratch_folder() / "a.pt";
  ZipWriter writer(path);
  for (const auto& [name, content] : entries) {
    writer.begin(name);
    writer.write(content.data(), content.size());
    writer.end();
  }
  writer.commit();
  return path;
}

TEST(TorchArchive, StoragesAreTheEntriesOfTheirKeys) {
  const std::string root =
      "\x80\x02" +
      pickled_dict(
          {{"a", tensor_of(storage_of("ByteStorage", "k", 4), 1, number(2), number(2))},
           {"b", tensor_of(storage_of("ByteStorage", "gone", 4), 0, number(1), number(1))},
           {"c", tensor_of(storage_of("ByteStorage", "k", 5), 0, number(1), number(1))},
           {"n", tensor_of(storage_of("LongStorage", "k", 0), 0, number(0) + number(3), number(3) + number(1))}}) +
      ".";
  for (const std::string folder : {"archive/", "", "a/b/"}) {
    const auto path = zip_of({{folder + "data.pkl", root},
                              {folder + "byteorder", "little"},
                              {folder + "data/k", "\1\2\3\4"},
                              {"other/data/gone", "\1\2\3\4"},
                              {folder + "xdata.pkl", "no pickle"}});
    const Checkpoint checkpoint = Checkpoint::open(path);
    EXPECT_EQ(checkpoint.format(), "pytorch zip");
    const Tensor a = checkpoint.tensor("a").contiguous();
    EXPECT_EQ(a.data<uint8_t>()[0], 2) << folder;
    EXPECT_EQ(a.data<uint8_t>()[1], 4) << folder;
    EXPECT_EQ(checkpoint.tensor("n").shape(), (Shape{0, 3}));
    EXPECT_EQ(checkpoint.tensor("n").dtype(), DType::i64);
    EXPECT_ERROR(testing::error_of([&] { checkpoint.tensor("b"); }), path.string() + ": b",
                 "no entry \"" + folder + "data/gone\"");
    EXPECT_ERROR(testing::error_of([&] { checkpoint.tensor("c"); }), path.string() + ": c", "4 bytes");
  }
}

TEST(TorchArchive, TheErrorSaysWhatIsWrong) {
  const std::string root =
      "\x80\x02" + pickled_dict({{"a", tensor_of(storage_of("ByteStorage", "k", 1), 0, number(1), number(1))}}) + ".";
  const auto error = [](const std::vector<std::pair<std::string, std::string>>& entries) {
    const auto path = zip_of(entries);
    const std::string text = testing::error_of([&] { Checkpoint::open(path); });
    return text.substr(path.string().size());
  };
  EXPECT_EQ(error({{"a/data.pkl", root}, {"b/data.pkl", root}}), ": expected one data.pkl, got several");
  EXPECT_EQ(error({{"a/data.pkl", root}, {"a/byteorder", "big"}}), ": expected little-endian data, got \"big\"");
  EXPECT_EQ(error({{"a/data.pkl", root}, {"a/byteorder", "little "}}),
            ": expected little-endian data, got \"little \"");
  EXPECT_EQ(error({{"a/data.pkl", root}, {"a/byteorder", "a text of more than 16 characters"}}),
            ": expected little-endian data, got \"a text of more t\"");
  EXPECT_EQ(error({{"a/data.pkl", root}, {"a/constants.pkl", ""}}),
            ": expected a TorchScript module with parameters, got none");
  EXPECT_EQ(error({{"a/xdata.pkl", root}}),
            ": expected a PyTorch archive or an .npz, got a zip archive with neither data.pkl nor .npy files");
  EXPECT_NO_THROW(Checkpoint::open(zip_of({{"a/data.pkl", root}, {"b/byteorder", "big"}})));
}

// A script's modules are objects whose attributes are their state.
TEST(TorchArchive, AScriptsTensorsAreThoseOfItsModulesByTheirPaths) {
  const auto byte = [](int64_t offset) {
    return tensor_of(storage_of("ByteStorage", "k", 4), offset, number(1), number(1));
  };
  const auto module = [](const std::string& name, const std::string& state) {
    return pickled_call("__torch__", name) + state + "b";
  };
  const std::string inner =
      module("Inner", "}(" + pickled_text("w") + byte(1) + pickled_text("") + byte(3) + "K\x01" + byte(3) + "u");
  const std::string root =
      "\x80\x02" +
      module("Net", "}(" + pickled_text("scale") + byte(0) + pickled_text("training") + "\x89" + pickled_text("one") +
                        inner + "q\x01" + pickled_text("again") + "h\x01" + pickled_text("two") +
                        module("Inner", "}(" + pickled_text("v") + byte(2) + "u") + pickled_text("none") +
                        pickled_call("mine", "Own") + "u") +
      ".";
  const Checkpoint checkpoint =
      Checkpoint::open(zip_of({{"m/data.pkl", root}, {"m/constants.pkl", ""}, {"m/data/k", "\1\2\3\4"}}));
  EXPECT_EQ(checkpoint.names(), (std::vector<std::string>{"scale", "one.w", "two.v"}));
  EXPECT_EQ(checkpoint.tensor("scale").data<uint8_t>()[0], 1);
  EXPECT_EQ(checkpoint.tensor("one.w").data<uint8_t>()[0], 2);
  EXPECT_EQ(checkpoint.tensor("two.v").data<uint8_t>()[0], 3);
}

TEST(TorchArchive, AStorageIsCheckedWhenItIsRead) {
  const std::string root =
      "\x80\x02" +
      pickled_dict({{"a", tensor_of(storage_of("ByteStorage", "k", 2), 0, number(1), number(1))},
                    {"b", tensor_of(storage_of("ByteStorage", "l", 2), 1, number(1), number(1))}}) +
      ".";
  const auto path = zip_of({{"m/data.pkl", root}, {"m/data/k", "\1\2"}, {"m/data/l", "content"}});
  const FileBytes file = FileBytes::map(path);
  std::string bytes(reinterpret_cast<const char*>(file.data.data()), file.data.size());
  bytes[bytes.find("content")] = 'C';
  const auto* data = reinterpret_cast<const std::byte*>(bytes.data());
  const Checkpoint checkpoint = Checkpoint::open(FileBytes::hold({data, data + bytes.size()}, "changed"));
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(checkpoint.tensor("a").data<uint8_t>()[0], 1);
    EXPECT_TRUE(contains(testing::error_of([&] { checkpoint.tensor("b"); }), "changed: m/data/l: expected a CRC of "))
        << round;
  }
}

}  // namespace
}  // namespace vitrail::weights
