// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/zero_shot_options.h"

#include <sstream>

#include "vitrail/base/error.h"
#include "vitrail/base/read_file.h"

namespace vitrail::app {

void ZeroShotOptions::add_to(CLI::App& command) {
  command
      .add_option(
          "--template", templates_given,
          "Text around each label, with {} in its place (default: \"" + default_template + "\"); may be repeated")
      ->allow_extra_args(false);
  command.add_option("--templates", templates_file,
                     "Text file with one template per line; their embeddings are averaged");
  add_tokenizer_to(command);
}

void ZeroShotOptions::add_tokenizer_to(CLI::App& command) {
  command.add_option("--tokenizer", tokenizer,
                     "Tokenizer: tokenizer.json, vocab.json beside merges.txt, spiece.model, or OpenCLIP's "
                     "bpe_simple_vocab_16e6.txt.gz (default: in the model's folder)");
}

std::vector<std::string> ZeroShotOptions::templates() const {
  std::vector<std::string> result = templates_given;
  if (!templates_file.empty()) {
    for (const std::string& line : read_lines(templates_file)) result.push_back(line);
  }
  if (result.empty()) result.push_back(default_template);
  return result;
}

std::vector<std::string> read_lines(const std::string& file) {
  std::string text = read_text_file(file);
  if (text.starts_with("\xef\xbb\xbf")) text.erase(0, 3);
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (line.ends_with('\r')) line.pop_back();
    if (!line.empty()) lines.push_back(line);
  }
  if (lines.empty()) throw Error(file, "at least one line of text", "none");
  return lines;
}

DualModel load_dual_model(const ModelOptions& options, const GlobalOptions& global, const std::string& tokenizer) {
  return DualModel(options.path(), session_options_of(options, global), tokenizer);
}

}  // namespace vitrail::app
