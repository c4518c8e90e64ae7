// SPDX-License-Identifier: Apache-2.0
// The section of a probe in the report, and what its model card says of the training.
#include <cmath>
#include <cstdio>

#include "vitrail/base/error.h"
#include "vitrail/data/augment/interval_json_internal.h"
#include "vitrail/data/metrics/metrics.h"
#include "vitrail/train/objectives/probe/probe_internal.h"
#include "vitrail/train/report/html_internal.h"

namespace vitrail::train {
namespace {

// 0.046415… → "0.0464"
std::string short_decimal(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

// How well held-out images are classified with each strength of the penalty.
std::vector<Chart> charts_of(const analysis::StrengthSearch& search) {
  Curve loss{"cross-validation", {}, {}}, top1 = loss;
  for (size_t i = 0; i < search.held_out.size(); ++i) {
    for (Curve* curve : {&loss, &top1}) curve->x.push_back(std::log10(search.c[i]));
    loss.y.push_back(search.held_out[i].loss);
    top1.y.push_back(search.held_out[i].top1);
  }
  return {{"Held-out loss", "log10 C", false, {loss}}, {"Held-out top-1 accuracy", "log10 C", true, {top1}}};
}

}  // namespace

void add_search(const analysis::StrengthSearch& search, Report& report) {
  report.charts = charts_of(search);
  report.summary["probe"] = {{"c", search.best}, {"folds", search.folds}};
  if (search.folds == 0) return;
  const analysis::Fit& fit = search.held_out_fit();
  auto& summary = report.summary["probe"];
  summary["cross_validated_top1"] = fit.top1;
  summary["cross_validated_top1_interval"] = data::interval_json(fit.top1, search.samples);
  summary["cross_validated_images"] = search.samples;
  summary["cross_validated_loss"] = fit.loss;
  report.facts.emplace_back(
      str("top-1 in ", search.folds, "-fold cross-validation", interval_text(fit.top1, search.samples)),
      percent(fit.top1, 2));
  report.facts.emplace_back("C, the inverse strength of the L2 penalty", short_decimal(search.best));
}

TrainingTexts probe_texts(const Recipe& recipe, const analysis::StrengthSearch& search) {
  TrainingTexts texts{.origin = "A linear probe of `" + recipe.model.init + "`",
                      .training = str("Logistic regression on features of `", recipe.data.train, "`, with C ",
                                      search.best, " (the inverse strength of the L2 penalty)")};
  if (search.folds > 0)
    texts.results = str("- ", search.folds, "-fold cross-validation, which chose the L2 penalty: top-1 ",
                        data::accuracy_text(search.held_out_fit().top1, search.samples), ".\n");
  return texts;
}

}  // namespace vitrail::train
