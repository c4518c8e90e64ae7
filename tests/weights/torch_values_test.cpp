// SPDX-License-Identifier: Apache-2.0
// What training scripts store beside the weights, and where the weights are in a checkpoint.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/support/messages.h"
#include "tests/support/torch_save.h"
#include "tests/support/warnings.h"
#include "vitrail/base/error.h"
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

std::string error_of(const std::string& file) {
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
                                                         {"operator", "attrgetter"},
                                                         {"_operator", "methodcaller"},
                                                         {"functools", "partial"},
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
      const std::string error = error_of(save.file(pickled_dict({{"model", model}, {"extra", global}})));
      EXPECT_NE(error.find(std::string(module) + "." + name + ", which is refused"), std::string::npos)
          << module << "." << name << ": " << error;
    }
  }
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
    EXPECT_EQ(error_of(save.file(pickled_dict({{"model", model}, {"extra", pickled_call(module, name)}}))), "no error")
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

TEST(TorchValues, AModuleInsideACheckpointIsNamed) {
  TorchSave save;
  const std::string module = pickled_global("timm.models.vision_transformer", "VisionTransformer") + ")\x81" +
                             pickled_dict({{"_parameters", save.state_dict({{"cls_token", Tensor::zeros({1})}})}}) +
                             "b";
  const std::string error = error_of(save.file(pickled_dict({{"epoch", "K\x03"}, {"net", module}})));
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
      const testing::WarningsKept warnings;
      const std::string root =
          first ? pickled_dict({{key, average}, {"model", model}}) : pickled_dict({{"model", model}, {key, average}});
      expect_tensors(open(save.file(root)), timm_tensors(20), key);
      ASSERT_EQ(warnings.all().size(), 1u) << key;
      EXPECT_EQ(warnings.all()[0],
                str("file.pth: uses the weights under \"", key, "\"; the file also has weights under \"model\""));
    }
  }
}

TEST(TorchValues, BigEndianFilesAreErrors) {
  TorchSave save;
  std::string file = save.file(pickled_dict({{"model", save.state_dict(timm_tensors())}}));
  EXPECT_EQ(error_of(file), "no error");
  const std::string little = "little_endian";
  const size_t value = file.find('\x88', file.find(little));
  ASSERT_NE(value, file.npos);
  file[value] = '\x89';  // False
  EXPECT_TRUE(testing::contains(error_of(file), "expected little-endian data")) << error_of(file);
}

// The same order for a known and for an unknown family.
TEST(TorchValues, OfSeveralWrapperKeysTheFirstCounts) {
  const std::vector<std::string> keys{"state_dict_ema",   "model_ema", "state_dict", "model",
                                      "model_state_dict", "module",    "teacher",    "student"};
  const testing::WarningsKept warnings;
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
  const testing::WarningsKept warnings;
  for (const char* key : {"net", "weights", "params", "generator", "backbone"}) {
    TorchSave save;
    const std::string optimizer = pickled_dict({{"state", save.state_dict({{"exp_avg", Tensor::zeros({9})}})}});
    const std::string model = save.state_dict(timm_tensors());
    const std::string root = pickled_dict({{"optimizer", optimizer}, {"run", pickled_dict({{key, model}})}});
    expect_tensors(open(save.file(root)), timm_tensors(), key);
    expect_tensors(open(save.file("(K\x01" + root + "t")), timm_tensors(), key);
  }
  EXPECT_TRUE(warnings.all().empty());
}

}  // namespace
}  // namespace vitrail::weights
