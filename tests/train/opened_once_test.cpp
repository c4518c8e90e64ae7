// SPDX-License-Identifier: Apache-2.0
// Files are opened once, however often a run asks for what they hold.
#include "tests/support/opens.h"
#include "tests/support/sam_fixture.h"
#include "tests/train/segment_fixture.h"
#include "vitrail/train/objectives/segmentation/segment_model_internal.h"
#include "vitrail/train/recipe/default_recipe.h"
#include "vitrail/train/trainer.h"

namespace vitrail::train {
namespace {

TEST(OpenedOnce, ARunWithADefaultRecipe) {
  const fs::path root = testing::scratch_folder(), images = root / "images", model = root / "model";
  fs::rename(make_images(8, 2), images);
  fs::copy(testing::fixture("models/timm_token"), model);
  const auto opens = testing::count_opens(root, [&] {
    const DefaultRecipe chosen = default_recipe({.data = images.string(), .model = model.string(), .epochs = 2});
    const Recipe recipe = with_overrides(chosen.recipe, "r.json", {"seed=1", "data.retrain=false"});
    train(recipe, {.folder = testing::scratch_folder(), .threads = 1});
  });
  for (const char* file : {"model.safetensors", "config.json"}) EXPECT_EQ(opens.at(model / file), 1) << file;
  for (const char* split : {"train", "test"}) {
    for (const char* name : {"blue", "green", "red"}) EXPECT_EQ(opens.at(images / split / name), 1) << split << name;
  }
  EXPECT_LE(opens.at(images / "train/blue/00.png"), 4) << "its pixels, and a hash in each comparison of three sets";
}

// Both kinds of checkpoints that training of Segment Anything starts from.
TEST(OpenedOnce, TheStartOfSegmentAnything) {
  const fs::path folder = testing::scratch_folder();
  fs::copy(testing::sam_fixture("windows").model, folder / "sam.pth");
  fs::copy(testing::fixture("models/timm_token"), folder / "vit");
  for (const auto& [start, weights] : {std::pair{"sam.pth", "sam.pth"}, {"vit", "vit/model.safetensors"}}) {
    Recipe recipe{.objective = "segment", .section = SegmentRecipe{}};
    recipe.model.init = (folder / start).string();
    const auto opens = testing::count_opens(folder, [&] { prepare_sam(recipe); });
    EXPECT_EQ(opens.at(folder / weights), 1) << start;
  }
}

}  // namespace
}  // namespace vitrail::train
