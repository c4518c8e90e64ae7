// SPDX-License-Identifier: Apache-2.0
// The documents of requests against the fields of the tasks: docs/serving.md and the server's openapi.json.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "tests/support/paths.h"
#include "vitrail/base/read_file.h"
#include "vitrail/pipeline/attention_view.h"
#include "vitrail/pipeline/feature_fields.h"
#include "vitrail/pipeline/pca_view.h"
#include "vitrail/sam/automatic.h"
#include "vitrail/tasks/task.h"

namespace vitrail::tasks {
namespace {

using Names = std::set<std::string>;

// The fields of the tasks that describe some.
std::vector<FieldRow> fields_of(const Task& row) {
  const std::string& task = row.name;
  if (row.describe) return rows_of(row.describe);
  if (task == "embed") return rows_of(pipeline::describe_features);
  if (task == "attention") return rows_of(pipeline::describe_attention);
  if (task == "pca") return rows_of(pipeline::describe_pca);
  if (task == "segment") return rows_of(sam::describe_automatic);
  return {};
}

// The cell of a route's options: "`tokens`, `layer`".
std::string documented_options(const std::string& task) {
  std::string text = read_text_file(testing::source("docs/serving.md"));
  text.erase(0, text.find("| request | options | result |"));
  const size_t route = std::min(text.find("/v1/" + task + "?"), text.find("/v1/" + task + "\"` |"));
  const size_t begin = text.find(" | ", route), end = text.find(" | ", begin + 1);
  return route == text.npos || end == text.npos ? "" : text.substr(begin + 3, end - begin - 3);
}

nlohmann::json parameters_of(const std::string& task) {
  static const auto api = nlohmann::json::parse(read_text_file(testing::source("vitrail/serve/page/openapi.json")));
  nlohmann::json parameters;
  for (const auto& each : api.at("paths").at("/v1/" + task).at("post").at("parameters"))
    parameters[each.at("name")] = each.at("schema");
  return parameters;
}

TEST(TaskDocumentation, NamesTheOptionsOfEachRoute) {
  for (const Task& task : tasks()) {
    const std::string cell = documented_options(task.name);
    ASSERT_NE(cell, "") << task.name;
    static const std::regex name("`([a-z-]+)`");
    const Names documented(std::sregex_token_iterator(cell.begin(), cell.end(), name, 1), std::sregex_token_iterator());
    Names parameters;
    const nlohmann::json described = parameters_of(task.name);
    for (const auto& [parameter, schema] : described.items()) parameters.insert(parameter);
    for (const char* of_all : {"model", "exif"}) EXPECT_EQ(parameters.erase(of_all), 1u) << task.name;
    // Files of a form are no parameters.
    if (task.name == "segment") parameters.insert("mask");
    for (const TaskFile& file : task.input_files) parameters.insert(file.name);
    if (cell.find("…") == cell.npos) {
      EXPECT_EQ(documented, parameters) << task.name;
    } else {
      EXPECT_TRUE(std::ranges::includes(parameters, documented)) << cell;
    }
  }
}

// JSON Schema's type of a field.
std::string type_of(const std::string& expected) {
  if (expected == "true or false") return "boolean";
  if (expected.starts_with("an integer")) return "integer";
  return expected.starts_with("a number") ? "number" : "string";
}

// Limits of the server may be narrower, but begin where the field's do.
TEST(TaskDocumentation, ParametersHaveTheTypesAndValuesOfTheFields) {
  size_t compared = 0;
  for (const Task& task : tasks()) {
    const nlohmann::json parameters = parameters_of(task.name);
    for (const FieldRow& row : fields_of(task)) {
      const std::string where = task.name + ": " + row.option;
      ASSERT_TRUE(parameters.contains(row.option)) << where;
      const nlohmann::json& schema = parameters[row.option];
      const nlohmann::json& one = schema.at("type") == "array" ? schema.at("items") : schema;  // repeated or not
      EXPECT_EQ(one.at("type"), type_of(row.expected)) << where;
      for (const auto& value : schema.value("enum", nlohmann::json::array()))
        EXPECT_NE((" " + row.expected + ",").find(" " + value.get<std::string>()), std::string::npos) << where << value;
      std::smatch range;
      static const std::regex numbers(R"(an? (?:integer|number) (?:from|of at least) (\S+)(?: to (\S+))?)");
      if (!std::regex_match(row.expected, range, numbers)) continue;
      EXPECT_EQ(schema.at("minimum"), std::stod(range[1])) << where;
      if (range[2].matched) {
        EXPECT_LE(schema.at("maximum"), std::stod(range[2])) << where;
      }
      ++compared;
    }
  }
  EXPECT_GT(compared, 8u);
}

}  // namespace
}  // namespace vitrail::tasks
