// SPDX-License-Identifier: Apache-2.0
#include "vitrail/weights/model_prefixes_internal.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/base/error.h"
#include "vitrail/weights/checkpoint.h"
#include "vitrail/weights/key_map.h"
#include "vitrail/weights/safetensors.h"
#include "vitrail/weights/wrapper_prefixes_internal.h"

namespace vitrail::weights {
namespace {

using Names = std::vector<std::string>;

const Names kTimm{"patch_embed.proj.weight", "blocks.0.attn.qkv.weight", "blocks.0.norm1.weight", "head.weight"};

// One set of keys per family, by which it is recognised.
std::vector<Names> families() {
  return {kTimm,
          {"vit.embeddings.patch_embeddings.projection.weight", "vit.encoder.layer.0.layernorm_before.weight",
           "classifier.weight"},
          {"conv_proj.weight", "encoder.pos_embedding", "encoder.layers.encoder_layer_0.ln_1.weight"},
          {"to_patch_embedding.2.weight", "to_patch_embedding.3.weight", "transformer.layers.0.0.to_qkv.weight"}};
}

Names prefixed(const Names& names, const std::string& prefix) {
  Names result;
  for (const std::string& name : names) result.push_back(prefix + name);
  return result;
}

Names all_of(const std::vector<std::string>& prefixes) {
  Names names;
  for (const std::string& prefix : prefixes) {
    for (const std::string& name : kTimm) names.push_back(prefix + name);
  }
  return names;
}

TEST(ModelPrefixes, AnyPrefixOfAnyFamilyIsFoundBesideOtherKeys) {
  for (const Names& family : families()) {
    for (const std::string prefix :
         {"", "net.", "model._orig_mod.", "a.b.c.", "module.vit_model.", "backbone.", "encoder/"}) {
      Names names{"criterion.weight", "n_averaged"};
      const Names model = prefixed(family, prefix);
      names.insert(names.begin() + 1, model.begin(), model.end());
      EXPECT_EQ(find_model_prefixes(names), Names{prefix}) << prefix << family.front();
    }
  }
}

TEST(InnerWrappers, AreRemovedAnywhereInANameAndModuleBehindANumber) {
  const std::pair<const char*, const char*> cases[] = {
      {"blocks.0._orig_mod.norm1.weight", "blocks.0.norm1.weight"},
      {"_fsdp_wrapped_module.blocks.1._fsdp_wrapped_module._checkpoint_wrapped_module.attn.qkv.bias",
       "blocks.1.attn.qkv.bias"},
      {"blocks.2.module.mlp.fc1.weight", "blocks.2.mlp.fc1.weight"},
      {"model_ema.module.cls_token", "model_ema.module.cls_token"},
      {"my_orig_mod.weight", "my_orig_mod.weight"},
      {"head._orig_mod", "head._orig_mod"}};
  for (const auto& [name, expected] : cases) EXPECT_EQ(without_inner_wrappers(name), expected);
}

TEST(WrapperPrefixes, OfAllNamesAreRemoved) {
  const auto stripped = [](Names names) {
    strip_wrapper_prefixes(names);
    return names;
  };
  EXPECT_EQ(stripped({}), Names{});
  EXPECT_EQ(stripped({"module.a", "module.b"}), (Names{"a", "b"}));
  EXPECT_EQ(stripped({"module._orig_mod.model.a", "module._orig_mod.model.b"}), (Names{"a", "b"}));
  EXPECT_EQ(stripped({"_fsdp_wrapped_module.module.a"}), Names{"a"});
  EXPECT_EQ(stripped({"module.a", "b"}), (Names{"module.a", "b"}));
  EXPECT_EQ(stripped({"modules.a"}), Names{"modules.a"});
  EXPECT_EQ(stripped({"backbone.a", "head.b"}), (Names{"backbone.a", "head.b"}));
  EXPECT_EQ(stripped({"module.backbone.a", "module.head.b"}), (Names{"backbone.a", "head.b"}));
}

TEST(InnerWrappers, StayWhereTwoNamesWouldBecomeEqual) {
  Names names{"blocks.0._orig_mod.norm1.weight", "blocks.0.norm1.weight"};
  const Names before = names;
  EXPECT_EQ(strip_inner_wrappers(names), 0U);
  EXPECT_EQ(names, before);
  names.pop_back();
  EXPECT_EQ(strip_inner_wrappers(names), 1U);
  EXPECT_EQ(names, Names{"blocks.0.norm1.weight"});
}

TEST(ModelPrefixes, OtherNamesHaveNone) {
  EXPECT_TRUE(find_model_prefixes({}).empty());
  EXPECT_TRUE(find_model_prefixes({"conv1.weight", "fc.weight"}).empty());
  EXPECT_TRUE(find_model_prefixes(prefixed(kTimm, "net")).empty()) << "a prefix ends with a separator";
}

TEST(ModelPrefixes, AveragesComeFirstAndStudentsLast) {
  const std::pair<Names, std::string> cases[] = {{{"model.", "ema_model."}, "ema_model."},
                                                 {{"model.", "model_ema.module."}, "model_ema.module."},
                                                 {{"student.", "teacher."}, "teacher."},
                                                 {{"teacher.", "model."}, "model."},
                                                 {{"online_encoder.", "target_encoder."}, "target_encoder."},
                                                 {{"first.", "second."}, "first."},
                                                 {{"schema.", "model.", "swa."}, "swa."},
                                                 {{"momentum_encoder.", "model."}, "model."},
                                                 {{"student.", "momentum_encoder."}, "momentum_encoder."},
                                                 {{"teacher.", "averaged_model."}, "averaged_model."},
                                                 {{"model.", "average."}, "average."},
                                                 {{"model.", "avg_model."}, "avg_model."},
                                                 {{"online.", "model."}, "model."}};
  for (const auto& [prefixes, expected] : cases) {
    Names names;
    for (const std::string& prefix : prefixes) {
      for (const std::string& name : kTimm) names.push_back(prefix + name);
    }
    const Names found = find_model_prefixes(names);
    ASSERT_EQ(found.size(), prefixes.size());
    EXPECT_EQ(found.front(), expected);
  }
}

Checkpoint checkpoint_of_values(const std::vector<std::pair<std::string, float>>& values) {
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (const auto& [name, value] : values) {
    Tensor tensor = Tensor::empty({1});
    tensor.data<float>()[0] = value;
    tensors.emplace_back(name, tensor);
  }
  const auto path = testing::scratch_folder() / "model.safetensors";
  write_safetensors(path, tensors, {});
  return Checkpoint::open(path);
}

TEST(ModelPrefixes, TensorsBesideTheModelStayUnlessTheirNameIsTaken) {
  Checkpoint checkpoint = checkpoint_of_values({{"net.patch_embed.proj.weight", 1.f},
                                                {"net.blocks.0.attn.qkv.weight", 2.f},
                                                {"net.blocks.0.norm1.weight", 3.f},
                                                {"net.head.weight", 4.f},
                                                {"head.weight", 5.f},
                                                {"criterion.weight", 6.f}});
  const testing::Warnings warnings;
  checkpoint.strip_model_prefix();
  EXPECT_EQ(checkpoint.tensors().size(), 5u);
  EXPECT_EQ(checkpoint.tensor("head.weight").data<float>()[0], 4.f);
  EXPECT_EQ(checkpoint.tensor("criterion.weight").data<float>()[0], 6.f);
  EXPECT_TRUE(checkpoint.beside("criterion.weight"));
  EXPECT_FALSE(checkpoint.beside("head.weight"));
  EXPECT_EQ(KeyMap::detect(checkpoint.names()).name(), "timm");
  EXPECT_TRUE(warnings.messages.empty());
}

TEST(ModelPrefixes, AnyOfSeveralModelsMayBeChosen) {
  std::vector<std::pair<std::string, float>> values;
  for (const std::string& name : kTimm) values.insert(values.end(), {{"model." + name, 1.f}, {"ema." + name, 2.f}});
  for (const size_t choice : {0, 1}) {
    Checkpoint checkpoint = checkpoint_of_values(values);
    const testing::Warnings warnings;
    EXPECT_EQ(checkpoint.strip_model_prefix(choice), (Names{"ema.", "model."}));
    EXPECT_EQ(checkpoint.tensor("head.weight").data<float>()[0], choice == 0 ? 2.f : 1.f);
    EXPECT_TRUE(warnings.any(choice == 0
                                 ? "uses the weights under \"ema.\"; the file also has weights under \"model.\""
                                 : "uses the weights under \"model.\"; the file also has weights under \"ema.\""));
  }
}

TEST(ModelPrefixes, MomentsBesideAModelWithoutAPrefixAreBesideIt) {
  std::vector<std::pair<std::string, float>> values{{"criterion.weight", 3.f}};
  for (const std::string& name : kTimm) values.insert(values.end(), {{name, 1.f}, {"exp_avg." + name, 2.f}});
  Checkpoint checkpoint = checkpoint_of_values(values);
  EXPECT_EQ(checkpoint.strip_model_prefix(), Names{""});
  for (const std::string& name : kTimm) {
    EXPECT_FALSE(checkpoint.beside(name));
    EXPECT_TRUE(checkpoint.beside("exp_avg." + name));
  }
  EXPECT_FALSE(checkpoint.beside("criterion.weight"));
}

TEST(ModelPrefixes, TheChoiceOfOneOfTwoModelsIsSaid) {
  std::vector<std::pair<std::string, float>> values;
  for (const std::string& name : kTimm) values.insert(values.end(), {{"model." + name, 1.f}, {"ema." + name, 2.f}});
  Checkpoint checkpoint = checkpoint_of_values(values);
  const testing::Warnings warnings;
  checkpoint.strip_model_prefix();
  EXPECT_EQ(checkpoint.tensor("head.weight").data<float>()[0], 2.f);
  ASSERT_EQ(warnings.messages.size(), 1u);
  EXPECT_NE(warnings.messages[0].find("uses the weights under \"ema.\"; the file also has weights under \"model.\""),
            std::string::npos)
      << warnings.messages[0];
}

TEST(UseOrder, AveragesAreBeforeModelsTeachersAndStudents) {
  const std::pair<const char*, int> cases[] = {{"ema", 0},
                                               {"swa", 0},
                                               {"averaged", 0},
                                               {"average", 0},
                                               {"avg", 0},
                                               {"target", 0},
                                               {"teacher", 6},
                                               {"momentum_encoder", 6},
                                               {"student", 8},
                                               {"online", 8},
                                               {"", 4},
                                               {"model", 2},
                                               {"state_dict", 2},
                                               {"model_state_dict", 2},
                                               {"params/", 2},
                                               {"weights", 2},
                                               {"run/model/net.", 2},
                                               {"my_model", 4},
                                               {"schema", 4},
                                               {"emas", 4},
                                               {"Ema", 4},
                                               {"a.ema.b", 0},
                                               {"model_ema", 0},
                                               {"x/ema/y", 0},
                                               {"ema.", 0},
                                               {"._/ema", 0},
                                               {"teacher.ema", 0},
                                               {"student_teacher", 6},
                                               {"x.student", 8},
                                               {"online-encoder", 4},
                                               {"targets", 4},
                                               {"best_state", 4},
                                               {"last_state", 5},
                                               {"latest", 5},
                                               {"previous", 5},
                                               {"finetuned", 4},
                                               {"pretrained", 5},
                                               {"init_weights", 5},
                                               {"initial_state_dict", 5},
                                               {"model/last", 3},
                                               {"ema_last", 1}};
  for (const auto& [key, order] : cases) EXPECT_EQ(use_order(key), order) << key;
}

// Moments and gradients have the names and shapes of the weights.
TEST(OptimizerState, IsNeverAModel) {
  for (const std::string key : {"exp_avg",
                                "exp_avg_sq",
                                "max_exp_avg_sq",
                                "square_avg",
                                "avg_grad",
                                "grad",
                                "grads",
                                "gradients",
                                "opt",
                                "opt/0/1/0/mu",
                                "opt_state/nu",
                                "optim",
                                "optimizer",
                                "optimiser",
                                "optimizer/master",
                                "model/optimizer",
                                "optimizer_state_dict/exp_avg",
                                "momentum",
                                "momentum_buffer",
                                "state.momentum",
                                "mu",
                                "nu"}) {
    EXPECT_TRUE(is_optimizer_state(key)) << key;
    EXPECT_EQ(find_model_prefixes(all_of({key + ".", "zzz."})), Names{"zzz."}) << key;
    EXPECT_EQ(find_model_prefixes(all_of({key + "/"})), Names{}) << key;
  }
  for (const std::string key : {"avg", "avg_model", "averaged_model", "momentum_encoder", "encoder_momentum", "optical",
                                "graded", "expert", "square", "ema", "model", "opt/target", ""}) {
    EXPECT_FALSE(is_optimizer_state(key)) << key;
  }
}

TEST(QuotedList, HasAtMostSomeWordsOfAtMost80Characters) {
  EXPECT_EQ(quoted_list({}), "");
  EXPECT_EQ(quoted_list({"a"}), "\"a\"");
  EXPECT_EQ(quoted_list({"a", "b", "c", "d"}), "\"a\", \"b\", \"c\", \"d\"");
  EXPECT_EQ(quoted_list({"a", "b", "c", "d", "e"}), "\"a\", \"b\", \"c\", \"d\", …");
  EXPECT_EQ(quoted_list({"a", "b"}, 1), "\"a\", …");
  EXPECT_EQ(quoted_list({std::string(81, 'x'), std::string(80, 'y')}),
            "\"" + std::string(80, 'x') + "\", \"" + std::string(80, 'y') + "\"");
}

TEST(ModelPrefixes, AreInTheOrderOfUseAndElseOfTheFile) {
  EXPECT_EQ(find_model_prefixes(all_of({"student.", "z.", "teacher.", "a.", "ema.", "swa."})),
            (Names{"ema.", "swa.", "z.", "a.", "teacher.", "student."}));
  EXPECT_EQ(find_model_prefixes(all_of({"", "x."})), Names{""}) << "those inside are part of it";
  EXPECT_EQ(find_model_prefixes(all_of({"x.y.", "x."})), Names{"x."});
  EXPECT_EQ(find_model_prefixes(all_of({"x.", "xy."})), (Names{"x.", "xy."}));
  EXPECT_EQ(find_model_prefixes(all_of({"a/", "b."})), (Names{"a/", "b."}));
  Names incomplete = all_of({"a.", "b."});
  incomplete.erase(incomplete.begin());
  EXPECT_EQ(find_model_prefixes(incomplete), Names{"b."});
}

TEST(WrapperPrefixes, AreThoseOfTrainingScripts) {
  const auto stripped = [](Names names) {
    strip_wrapper_prefixes(names);
    return names;
  };
  for (const std::string prefix : {"module.", "_orig_mod.", "_fsdp_wrapped_module.", "model.", "backbone."}) {
    EXPECT_EQ(stripped({prefix + "a", prefix + "b"}), (Names{"a", "b"})) << prefix;
    EXPECT_EQ(stripped({prefix + prefix + "a"}), Names{"a"}) << prefix;
    const Names some{prefix + "a", "b"};
    EXPECT_EQ(stripped(some), some) << prefix;
    EXPECT_EQ(stripped({"x." + prefix + "a"}), Names{"x." + prefix + "a"}) << prefix;
  }
  for (const char* other : {"_checkpoint_wrapped_module.a", "net.a", "encoder.a", "Module.a"})
    EXPECT_EQ(stripped({other}), Names{other});
  EXPECT_EQ(stripped({"model.backbone.a", "model.b"}), (Names{"backbone.a", "b"}));
}

TEST(InnerWrappers, AreCountedByTheNamesThatChange) {
  Names names{"blocks.0._orig_mod.a", "b", "blocks.1.module.c._checkpoint_wrapped_module.d", "module.e"};
  EXPECT_EQ(strip_inner_wrappers(names), 2u);
  EXPECT_EQ(names, (Names{"blocks.0.a", "b", "blocks.1.c.d", "module.e"}));
  EXPECT_EQ(strip_inner_wrappers(names), 0u);
  Names none;
  EXPECT_EQ(strip_inner_wrappers(none), 0u);
  EXPECT_EQ(without_inner_wrappers(""), "");
  EXPECT_EQ(without_inner_wrappers("0.module.1.module.module.x"), "0.1.x") << "the part before is the kept one";
  EXPECT_EQ(without_inner_wrappers("1a.module.x"), "1a.module.x");
  EXPECT_EQ(without_inner_wrappers("12._fsdp_wrapped_module.module.x"), "12.x");
}

TEST(ModelPrefixes, WrappersInsideTheNamesAreRemovedAndCounted) {
  const auto warnings_of = [](const std::vector<std::pair<std::string, float>>& values, const Names& want) {
    Checkpoint checkpoint = checkpoint_of_values(values);
    const testing::Warnings warnings;
    checkpoint.strip_model_prefix();
    EXPECT_EQ(checkpoint.names(), want);
    for (const std::string& warning : warnings.messages) {
      EXPECT_TRUE(warning.starts_with(checkpoint.path() + ": ")) << warning;
    }
    Names texts;
    for (const std::string& warning : warnings.messages) texts.push_back(warning.substr(checkpoint.path().size() + 2));
    return texts;
  };
  const std::string removed = "removed the names of wrappers (\"_orig_mod.\" and the like) from the names of ";
  EXPECT_EQ(
      warnings_of(
          {{"blocks.0._orig_mod.attn.qkv.weight", 1}, {"blocks.0.norm1.weight", 2}, {"patch_embed.proj.weight", 3}},
          {"blocks.0.attn.qkv.weight", "blocks.0.norm1.weight", "patch_embed.proj.weight"}),
      Names{removed + "1 tensor"});
  EXPECT_EQ(warnings_of({{"net.blocks.0.attn.qkv.weight", 1},
                         {"net.blocks.0.norm1.weight", 2},
                         {"net.blocks.1._orig_mod.a", 4},
                         {"net.blocks.1._orig_mod.b", 5},
                         {"net.patch_embed.proj.weight", 3},
                         {"other.0._orig_mod.x", 6}},
                        {"blocks.0.attn.qkv.weight", "blocks.0.norm1.weight", "blocks.1.a", "blocks.1.b",
                         "patch_embed.proj.weight", "other.0._orig_mod.x"}),
            Names{removed + "2 tensors"})
      << "names beside the model stay";
  EXPECT_EQ(warnings_of({{"some", 1}, {"other", 2}}, {"other", "some"}), Names{});
}

}  // namespace
}  // namespace vitrail::weights
