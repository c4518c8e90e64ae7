// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/commands/prediction_printer.h"

#include <utility>

#include "apps/vitrail/shell/field_options.h"
#include "vitrail/base/csv.h"
#include "vitrail/pipeline/prediction_json_internal.h"

namespace vitrail::app {

void PredictionOptions::add_to(CLI::App& command) {
  add_field_options(command, [this](Fields& f) {
    f.integer({"top", "Number of classes to print"}, top, 1);
    f.choice({"format", "Output format: text, json (one object per line) or csv"}, format, {"text", "json", "csv"});
  });
}

void PredictionOptions::default_to_json(const CLI::App& command) {
  if (command.count("--format") == 0) format = "json";
}

PredictionPrinter::PredictionPrinter(Format format, std::string activation)
    : format_(format), activation_(std::move(activation)) {
  if (format_ == Format::csv) print_output("path,rank,index,label,probability,error\n");
}

void PredictionPrinter::print(const Outcome& outcome, const std::vector<Prediction>& predictions) const {
  switch (format_) {
    case Format::text:
      return print_text(outcome, predictions);
    case Format::json:
      return print_json(outcome.numbered(pipeline::prediction_json(outcome.path(), activation_, predictions)));
    case Format::csv:
      break;
  }
  for (size_t rank = 0; rank < predictions.size(); ++rank) {
    const Prediction& p = predictions[rank];
    print_output("{},{},{},{},{:.6g},\n", csv_field(outcome.path()), rank + 1, p.index, csv_field(p.label),
                 p.probability);
  }
}

void PredictionPrinter::print_failure(const Outcome& outcome, const std::string& message) const {
  if (format_ == Format::json) print_json(outcome.numbered(pipeline::failure_json(outcome.path(), message)));
  if (format_ == Format::csv) print_output("{},,,,,{}\n", csv_field(outcome.path()), csv_field(message));
}

void PredictionPrinter::print_text(const Outcome& outcome, const std::vector<Prediction>& predictions) const {
  print_output("{}\n", escaped(outcome.title()));
  for (const Prediction& p : predictions) {
    if (activation_ == "none") {
      print_output("  {:10.6g}  {}\n", p.probability, escaped(p.label));
    } else {
      print_output("  {:5.1f} %  {}\n", 100 * p.probability, escaped(p.label));
    }
  }
}

}  // namespace vitrail::app
