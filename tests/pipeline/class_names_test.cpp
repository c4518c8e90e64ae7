// SPDX-License-Identifier: Apache-2.0
#include "vitrail/pipeline/class_names.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"

namespace vitrail::pipeline {
namespace {

using testing::contains;
using testing::error_of;
using Names = std::vector<std::string>;

models::ModelConfig config_of(int64_t classes) {
  models::ModelConfig config;
  config.vit.num_classes = classes;
  return config;
}

std::string names_file(const std::string& text) {
  const std::filesystem::path path = testing::scratch_folder() / "names.txt";
  std::ofstream(path) << text;
  return path.string();
}

TEST(ClassNames, AFileHasExactlyAsManyNamesAsClasses) {
  const std::string three = names_file("cat\ndog\nbird\n");
  EXPECT_EQ(class_names(config_of(3), three), (Names{"cat", "dog", "bird"}));
  for (const int64_t classes : {1, 2, 4}) {
    const std::string message = error_of([&] { class_names(config_of(classes), three); });
    EXPECT_TRUE(contains(message, "class names, one per line, got 3")) << message;
  }
}

TEST(ClassNames, AFilePrecedesDescriptionsWhichPrecedeLabels) {
  models::ModelConfig config = config_of(2);
  EXPECT_EQ(class_names(config), Names{});
  config.labels = {"n01", "n02"};
  EXPECT_EQ(class_names(config), (Names{"n01", "n02"}));
  config.descriptions = {"tench", "goldfish"};
  EXPECT_EQ(class_names(config), (Names{"tench", "goldfish"}));
  EXPECT_EQ(class_names(config, names_file("cat\ndog")), (Names{"cat", "dog"}));
}

TEST(ClassNames, TheModelsOwnInAnotherOrderAreAWarning) {
  models::ModelConfig config = config_of(3);
  config.labels = {"cat", "dog", "bird"};
  testing::Warnings warnings;
  for (const char* text : {"cat\ndog\nbird\n", "Katze\nHund\nVogel\n", "dog\ncat\ncow\n"})
    class_names(config, names_file(text));
  EXPECT_TRUE(warnings.messages.empty()) << warnings.messages.front();
  const std::string file = names_file("bird\ncat\ndog\n");
  EXPECT_EQ(class_names(config, file), (Names{"bird", "cat", "dog"}));
  EXPECT_EQ(warnings.messages,
            Names{file + ": the names of the model's own classes in another order, which is taken as it is"});
  class_names(config_of(3), file);
  EXPECT_EQ(warnings.messages.size(), 1u) << "a model without names";
}

TEST(ClassNames, ImageNetsAreForAModelThatWasTrainedOnItAlone) {
  models::ModelConfig config = config_of(1000);
  EXPECT_EQ(class_names(config), Names{});
  config.tag = "augreg_in21k_ft_in1k";
  EXPECT_EQ(class_names(config).size(), 1000U);
  EXPECT_EQ(class_names(config).front().substr(0, 5), "tench");
  config.vit.num_classes = 999;
  EXPECT_EQ(class_names(config), Names{});
}

TEST(ClassNames, AProjectionHasNone) {
  models::ModelConfig config = config_of(2);
  config.labels = {"a", "b"};
  config.vit.projection_head = true;
  EXPECT_EQ(class_names(config), Names{});
  EXPECT_EQ(class_names(config, names_file("cat\ndog\n")), Names{});
}

TEST(ClassIndex, IsThatOfTheNameOrTheNumber) {
  const std::vector<std::string> names{"cat", "2", "dog"};
  const auto index = [&](const std::string& text) { return class_index("--class", text, names, 3); };
  EXPECT_EQ(index("dog"), 2);
  EXPECT_EQ(index("0"), 0);
  EXPECT_EQ(index("2"), 1) << "a name comes first";
  EXPECT_EQ(class_index("--class", "2", {}, 3), 2);
  for (const char* text : {"3", "-1", "", "zebra", "1x", "99999999999999999999"})
    EXPECT_ERROR(error_of([&] { index(text); }), "--class", str("'", text, "'"));
  EXPECT_ERROR(error_of([&] { index("dgo"); }), "--class", "'dgo'; did you mean dog?");
}

}  // namespace
}  // namespace vitrail::pipeline
