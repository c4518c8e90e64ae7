// SPDX-License-Identifier: Apache-2.0
// Averaged weights with "n_averaged" 0: torch.optim.swa_utils and Lightning have the weights from before the training.
#include <gtest/gtest.h>

#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "tests/support/torch_save.h"
#include "vitrail/weights/checkpoint.h"
#include "vitrail/weights/safetensors.h"

namespace vitrail::weights {
namespace {

using testing::pickled_dict;
using testing::TorchSave;
using NamedScalars = std::vector<std::pair<std::string, Tensor>>;

// The keys by which timm's family is recognised, and one more, all with one value.
NamedScalars family_values(const std::string& prefix, double value) {
  NamedScalars tensors;
  for (const char* name :
       {"patch_embed.proj.weight", "blocks.0.attn.qkv.weight", "blocks.0.norm1.weight", "head.weight"})
    tensors.emplace_back(prefix + name, Tensor::full({1}, value));
  return tensors;
}

float head_of(const Checkpoint& checkpoint) { return checkpoint.tensor("head.weight").data<float>()[0]; }

float head_of_saved(const std::string& file) {
  const auto* bytes = reinterpret_cast<const std::byte*>(file.data());
  return head_of(Checkpoint::open(FileBytes::hold({bytes, bytes + file.size()}, "file.pth")));
}

std::string pickled_count(bool begun) { return begun ? "K\x02" : std::string("K\0", 2); }

TEST(EmptyAverages, ComeLastAmongPrefixes) {
  for (const int64_t count : {0, 3}) {
    NamedScalars tensors{{"ema.n_averaged", Tensor::from<int64_t>({}, {count})}};
    for (const NamedScalars& model : {family_values("model.", 1), family_values("ema.module.", 2)})
      tensors.insert(tensors.end(), model.begin(), model.end());
    const auto path = testing::scratch_folder() / "model.safetensors";
    write_safetensors(path, tensors, {});
    Checkpoint checkpoint = Checkpoint::open(path);
    const testing::Warnings warnings;
    const std::vector<std::string> prefixes = checkpoint.strip_model_prefix();
    EXPECT_EQ(prefixes.front(), count == 0 ? "model." : "ema.module.");
    EXPECT_EQ(prefixes.size(), 2u);
    EXPECT_EQ(head_of(checkpoint), count == 0 ? 1.F : 2.F);
    EXPECT_EQ(warnings.any("the average under \"ema.module.\" has not begun (n_averaged is 0)"), count == 0);
  }
}

// Lightning has the number beside the weights, torch.optim.swa_utils among them.
TEST(EmptyAverages, ComeLastAmongStateDicts) {
  for (const bool begun : {false, true}) {
    TorchSave save;
    const std::string average = pickled_dict(
        {{"n_averaged", pickled_count(begun)}, {"average_model_state", save.state_dict(family_values("", 2))}});
    const std::string root = pickled_dict({{"state_dict", save.state_dict(family_values("", 1))},
                                           {"callbacks", pickled_dict({{"StochasticWeightAveraging", average}})}});
    const testing::Warnings warnings;
    EXPECT_EQ(head_of_saved(save.file(root)), begun ? 2.F : 1.F);
    EXPECT_EQ(
        warnings.any("the average under \"callbacks/StochasticWeightAveraging/average_model_state\" has not begun "
                     "(n_averaged is 0)"),
        !begun);
  }
}

TEST(EmptyAverages, TheCountMayBeAmongTheWeights) {
  for (const bool begun : {false, true}) {
    TorchSave save;
    std::vector<std::pair<std::string, std::string>> average{{"n_averaged", pickled_count(begun)}};
    for (const auto& [name, value] : family_values("", 2)) average.emplace_back(name, save.tensor(value));
    const std::string root =
        pickled_dict({{"swa_model", pickled_dict(average)}, {"model", save.state_dict(family_values("", 1))}});
    const testing::Warnings warnings;
    EXPECT_EQ(head_of_saved(save.file(root)), begun ? 2.F : 1.F);
    EXPECT_TRUE(warnings.any(begun ? "uses the weights under \"swa_model\"" : "uses the weights under \"model\""));
  }
}

TEST(EmptyAverages, ACountBesideOtherWeightsIsNotTheirs) {
  TorchSave save;
  const std::string root = pickled_dict({{"n_averaged", pickled_count(false)},
                                         {"student", save.state_dict(family_values("", 1))},
                                         {"best", save.state_dict(family_values("", 2))}});
  const testing::Warnings warnings;
  EXPECT_EQ(head_of_saved(save.file(root)), 2.F);
  EXPECT_FALSE(warnings.any("has not begun"));
}

}  // namespace
}  // namespace vitrail::weights
