// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/commands/zero_shot_options.h"

#include <filesystem>
#include <sstream>

#include "vitrail/base/error.h"
#include "vitrail/base/read_file.h"
#include "vitrail/models/label_file_internal.h"
#include "vitrail/pipeline/prediction_json_internal.h"

namespace vitrail::app {
namespace fs = std::filesystem;

std::vector<CLI::Option*> ZeroShotOptions::add_to(CLI::App& command) {
  CLI::Option* given = command
                           .add_option("--template", templates_given,
                                       "Text around each label, with {} in its place (default: \"" +
                                           std::string(DualModel::kDefaultTemplate) + "\"); may be repeated")
                           ->allow_extra_args(false);
  CLI::Option* file = command.add_option("--templates", templates_file,
                                         "Text file with one template per line; their embeddings are averaged");
  accept_dash(*file);
  return {given, file, add_tokenizer_to(command)};
}

CLI::Option* ZeroShotOptions::add_tokenizer_to(CLI::App& command) {
  return command.add_option("--tokenizer", tokenizer,
                            "Tokenizer: tokenizer.json, vocab.json beside merges.txt, spiece.model, or OpenCLIP's "
                            "bpe_simple_vocab_16e6.txt.gz (default: in the model's folder)");
}

std::vector<std::string> ZeroShotOptions::templates() const {
  std::vector<std::string> result = templates_given;
  if (!templates_file.empty()) {
    for (const std::string& line : read_lines(templates_file)) {
      if (!is_blank(line)) result.push_back(line);
    }
    if (result.empty()) throw Error(templates_file, "at least one line of text", "none");
  }
  return result;
}

std::vector<std::string> read_lines(const std::string& file) {
  std::string text = read_text_file(file);
  if (text.starts_with("\xef\xbb\xbf")) text.erase(0, 3);
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (line.ends_with('\r')) line.pop_back();
    lines.push_back(line);
  }
  return lines;
}

bool is_blank(const std::string& line) { return line.find_first_not_of(" \t") == std::string::npos; }

bool is_text_file(const std::string& text) {
  std::error_code error;
  const fs::file_status status = fs::status(text, error);
  if (fs::exists(status)) return !fs::is_directory(status);
  const std::string extension = fs::path(text).extension().string();
  const bool is_name = text.find_first_of(" ,") == text.npos;
  if (is_name && (extension == ".txt" || extension == ".json" || extension == ".csv"))
    throw Error(text, "a text file", "nothing at this path");
  return false;
}

namespace {

std::vector<std::string> split_option(const std::string& labels) {
  try {
    return pipeline::split_labels(labels);
  } catch (const Error& error) {
    throw Error("--labels", "a file, or " + error.parts()->expected, error.parts()->got);
  }
}

}  // namespace

std::vector<std::string> labels_of(const std::string& labels) {
  if (!is_text_file(labels)) return split_option(labels);
  std::vector<std::string> names = models::parse_labels(read_text_file(labels), labels, 0);
  if (names.empty()) throw Error(labels, "at least one name", "none");
  return names;
}

DualModel load_dual_model(const models::ModelFiles& files, const ModelOptions& options, const GlobalOptions& global,
                          const std::string& tokenizer) {
  return DualModel(files, session_options_of(options, global), tokenizer);
}

}  // namespace vitrail::app
