// SPDX-License-Identifier: Apache-2.0
// The documents of recipes against the fields: each is named in the section of its object, with its default.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <regex>

#include "tests/support/paths.h"
#include "vitrail/base/fields.h"
#include "vitrail/base/read_file.h"
#include "vitrail/train/recipe/recipe_overrides_internal.h"

namespace vitrail::train {
namespace {

// The text of a document from a title until the next one that is not below it.
std::string section(const std::string& file, const std::string& title) {
  const std::string text = read_text_file(testing::source(file));
  const size_t begin = text.find(title + "\n");
  size_t end = text.size();
  for (std::string level = title.substr(0, title.find(' ')); !level.empty(); level.pop_back())
    end = std::min(end, text.find("\n" + level + " ", begin));
  return begin == text.npos ? "" : text.substr(begin, end - begin);
}

std::string section_of(const std::string& object) {
  if (object == "augment") return section("docs/augmentation.md", "# Augmentation");
  if (object == "segment") return section("docs/segment.md", "## Train");
  if (object == "semantic") return section("docs/training.md", "## Label maps");
  if (object == "pretrain") return section("docs/pretraining.md", "## Recipe");
  if (object == "lora") return section("docs/training.md", "### LoRA");
  if (object == "contrastive") return section("docs/contrastive.md", "## Recipe");
  if (object == "detect") return section("docs/training.md", "## Boxes");
  const bool own = object == "data" || object == "optimizer" || object == "schedule" || object == "loss";
  return section("docs/training.md", own ? "### `" + object + "`" : "### Top level");
}

// The defaults of a section by the names of their fields: "`lr` (0.001)", "`beta2` and `eps` (0.999 and 1e-8; …)".
std::map<std::string, nlohmann::json> defaults_in(const std::string& text) {
  static const std::regex group(R"(((?:`\w+`(?:,? and |, )?)+)\s\(((?:\[\]|[^);])+))"), name("`(\\w+)`"),
      separator(", | and ");
  const std::sregex_token_iterator no_tokens;
  std::map<std::string, nlohmann::json> result;
  for (std::sregex_iterator at(text.begin(), text.end(), group), end; at != end; ++at) {
    const std::string names = (*at)[1], values = std::regex_replace((*at)[2].str(), std::regex("`"), "");
    const std::vector<std::string> fields(std::sregex_token_iterator(names.begin(), names.end(), name, 1), no_tokens);
    std::vector<std::string> defaults(std::sregex_token_iterator(values.begin(), values.end(), separator, -1),
                                      no_tokens);
    if (fields.size() == 1) defaults = {values};
    for (size_t i = 0; i < fields.size() && fields.size() == defaults.size(); ++i) {
      const auto json = nlohmann::json::parse(defaults[i], nullptr, false);
      if (!json.is_discarded() && !json.is_object()) result[fields[i]] = json;
    }
  }
  return result;
}

std::string text_of(const nlohmann::json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.is_null() || value.empty() ? "" : value.dump();
}

bool equal(const nlohmann::json& documented, const std::string& preset) {
  return documented.is_number() && !preset.empty() ? documented.get<double>() == std::stod(preset)
                                                   : text_of(documented) == preset;
}

TEST(RecipeDocumentation, NamesEachFieldWithItsDefault) {
  size_t compared = 0;
  std::vector<FieldRow> rows = rows_of(describe_recipe, Recipe{.objective = "segment"});
  for (const std::string objective : {"semantic", "detect", "contrastive"}) {
    std::ranges::copy_if(rows_of(describe_recipe, Recipe{.objective = objective}), std::back_inserter(rows),
                         [&](const FieldRow& row) { return row.name.starts_with(objective + "."); });
  }
  for (const FieldRow& row : rows) {
    const size_t dot = row.name.find('.');
    const std::string object = dot == row.name.npos ? "" : row.name.substr(0, dot);
    const std::string leaf = row.name.substr(row.name.rfind('.') + 1), text = section_of(object);
    EXPECT_TRUE(text.find("`" + leaf + "`") != text.npos || text.find("\"" + leaf + "\"") != text.npos)
        << row.name << ": not in its document";
    const bool of_object = row.name == (object.empty() ? "" : object + ".") + leaf || object == "ema";
    const auto defaults = defaults_in(text);
    const auto documented = defaults.find(leaf);
    if (!of_object || documented == defaults.end() || row.name == "objective") continue;
    if (row.preset.empty() && documented->second.is_number()) continue;  // it depends on the optimiser
    EXPECT_TRUE(equal(documented->second, row.preset))
        << row.name << ": documented " << documented->second << ", is " << row.preset;
    ++compared;
  }
  EXPECT_GT(compared, 55u) << "the documents are read";
}

// The block of defaults: its numbers have four decimals.
TEST(RecipeDocumentation, TheBlockOfAugmentationHasTheDefaults) {
  const std::string text = section_of("augment"), begin = "```json\n";
  const size_t at = text.find(begin) + begin.size();
  const auto block = nlohmann::json::parse(text.substr(at, text.find("```", at) - at));
  for (const FieldRow& row : rows_of(describe_recipe)) {
    if (!row.name.starts_with("augment.")) continue;
    const std::string path = std::regex_replace(row.name.substr(7), std::regex("\\."), "/");
    ASSERT_TRUE(block.contains(nlohmann::json::json_pointer(path))) << path;
    const nlohmann::json& value = block.at(nlohmann::json::json_pointer(path));
    const auto preset = nlohmann::json::parse("[" + row.preset + "]", nullptr, false);
    if (preset.is_discarded() || preset.empty() || preset[0].is_boolean()) {
      EXPECT_EQ(text_of(value), row.preset) << path;
      continue;
    }
    for (size_t i = 0; i < preset.size(); ++i) {
      const nlohmann::json& number = value.is_array() ? value.at(i) : value;
      EXPECT_NEAR(number.get<double>(), preset[i].get<double>(), 1e-4) << path;
    }
  }
}

}  // namespace
}  // namespace vitrail::train
