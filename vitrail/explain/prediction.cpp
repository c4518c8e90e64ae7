// SPDX-License-Identifier: Apache-2.0
#include "vitrail/explain/prediction_internal.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "vitrail/analysis/patch_removal.h"
#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"
#include "vitrail/base/random.h"
#include "vitrail/models/class_gradients.h"
#include "vitrail/models/flops.h"
#include "vitrail/models/head_ablation.h"
#include "vitrail/pipeline/attribution.h"

namespace vitrail::explain {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kTop = 10;
constexpr int64_t kCurveSteps = 20;
constexpr double kMaxFlops = 1e13;  // a method with more takes minutes

std::vector<int64_t> top_classes(const std::vector<double>& probabilities, int64_t count) {
  std::vector<int64_t> order(probabilities.size());
  std::iota(order.begin(), order.end(), 0);
  const auto end = order.begin() + std::min<int64_t>(count, std::ssize(order));
  std::partial_sort(order.begin(), end, order.end(), [&](int64_t a, int64_t b) {
    const double x = probabilities[static_cast<size_t>(a)], y = probabilities[static_cast<size_t>(b)];
    return x != y ? x > y : a < b;
  });
  order.erase(end, order.end());
  return order;
}

// Collects the classes whose names the page needs.
class Names {
 public:
  explicit Names(const std::vector<std::string>& all) : all_(all) {}
  int64_t add(int64_t index) {
    if (!all_.empty()) names_[std::to_string(index)] = all_[static_cast<size_t>(index)];
    return index;
  }
  Json json() { return std::move(names_); }

 private:
  const std::vector<std::string>& all_;
  Json names_ = Json::object();
};

Json prediction_json(const ClassQuestion& question, Names& names) {
  const std::vector<double> probabilities = probabilities_of(question.model.config(), question.logits);
  Json top = Json::array();
  for (const int64_t index : top_classes(probabilities, kTop)) {
    const auto logit = static_cast<double>(question.logits.data<float>()[index]);
    top.push_back({{"class", names.add(index)},
                   {"probability", finite_or_text(probabilities[static_cast<size_t>(index)])},
                   {"logit", finite_or_text(logit)}});
  }
  return {{"class", names.add(question.target)},
          {"probability", models::activation_of(question.model.config())},
          {"top", top}};
}

// The classifier on each token alone: pooling tokens that are all equal gives the token.
Tensor target_logits(const models::VisionTransformer& model, const Tensor& tokens, int64_t target) {
  const int64_t count = tokens.size(1), length = model.num_prefix_tokens() + 1;
  const Tensor repeated = tokens.select(0, 0).unsqueeze(1).expand({count, length, tokens.size(2)}).contiguous();
  const Tensor logits = model.forward_head(repeated);
  return logits.narrow(1, target, 1).contiguous().view({count});
}

void add_logit_lens(const ClassQuestion& question, Names& names, Arrays& arrays) {
  const models::VisionTransformer& model = question.differentiable;
  const int64_t depth = model.config().depth, top = std::min(kTop, model.config().num_classes);
  std::vector<int64_t> layers(static_cast<size_t>(depth));
  std::iota(layers.begin(), layers.end(), 0);
  const std::vector<Tensor> tokens = model.intermediates(question.input, layers, true);
  const Tensor classes = Tensor::empty({depth, top}), probability = Tensor::empty({depth, top});
  const Tensor of_target = Tensor::empty({depth}), of_tokens = Tensor::empty({depth, tokens[0].size(1)});
  for (int64_t block = 0; block < depth; ++block) {
    const Tensor& of_block = tokens[static_cast<size_t>(block)];
    const auto probabilities = probabilities_of(question.model.config(), model.forward_head(of_block).contiguous());
    const std::vector<int64_t> best = top_classes(probabilities, top);
    for (int64_t i = 0; i < top; ++i) {
      const int64_t index = names.add(best[static_cast<size_t>(i)]);
      classes.data<float>()[block * top + i] = static_cast<float>(index);  // exact below 2²⁴
      probability.data<float>()[block * top + i] = static_cast<float>(probabilities[static_cast<size_t>(index)]);
    }
    of_target.data<float>()[block] = static_cast<float>(probabilities[static_cast<size_t>(question.target)]);
    of_tokens.select(0, block).copy_(target_logits(model, of_block, question.target));
  }
  arrays.add("explain.lens.class", classes, Encoding::f32);
  arrays.add("explain.lens.probability", probability, Encoding::f32);
  arrays.add("explain.lens.target", of_target, Encoding::f32);
  arrays.add("explain.lens.tokens", of_tokens, Encoding::f32);
}

// Passes of a method through the model; a backward pass counts two.
double passes_of(const std::string& method, int64_t patches) {
  if (method == "leave_one_out") return static_cast<double>(patches);
  if (method == "integrated_gradients") return 51 * 3;
  return method == "smooth_grad" ? 25 * 3 : 3;
}

// A fixed order of the patches: the baseline of deletion and insertion.
std::vector<int64_t> random_order(int64_t count) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  RandomStream stream(random_key("explain.random_order"));
  for (size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[static_cast<size_t>(stream.uniform() * static_cast<double>(i))]);
  return order;
}

// Deletion and insertion curves of an order of the patches.
class Curves {
 public:
  Curves(const ClassQuestion& question, const analysis::PatchGrid& patches)
      : question_(question),
        patches_(patches),
        mean_(analysis::mean_color(question.input)),
        blurred_(analysis::blurred(question.input)) {}

  Json add(const std::string& method, const std::vector<int64_t>& order, Arrays& arrays) const {
    const auto curve = [&](const std::string& name, const Tensor& from, const Tensor& to) {
      const analysis::PatchCurve result = analysis::patch_curve(from, to, order, patches_, scores(), kCurveSteps);
      const auto count = std::ssize(result.scores);
      arrays.add(str("explain.", name, ".", method), Tensor::from({count}, result.scores), Encoding::f32);
      return finite_or_text(result.area);
    };
    Json areas;
    areas["deletion"] = curve("deletion", question_.input, mean_);
    areas["insertion"] = curve("insertion", blurred_, question_.input);
    return areas;
  }

 private:
  analysis::ScoresOf scores() const {
    return [this](const Tensor& images) {
      if (question_.progress) question_.progress(0, -1);
      const Tensor logits = question_.model.session().logits(images);
      std::vector<float> result;
      for (int64_t row = 0; row < logits.size(0); ++row) {
        const auto probabilities = probabilities_of(question_.model.config(), logits.narrow(0, row, 1).contiguous());
        result.push_back(static_cast<float>(probabilities[static_cast<size_t>(question_.target)]));
      }
      return result;
    };
  }

  const ClassQuestion& question_;
  analysis::PatchGrid patches_;
  Tensor mean_, blurred_;
};

Json add_attributions(const ClassQuestion& question, Arrays& arrays,
                      std::vector<std::pair<std::string, std::string>>& left_out) {
  const models::VisionTransformer& model = question.differentiable;
  const analysis::PatchGrid patches{model.grid_of(question.input.size(2), question.input.size(3)),
                                    model.config().patch_size};
  const double flops = models::forward_flops(model, question.input.shape());
  const Curves curves(question, patches);
  Json rows = Json::array();
  for (const pipeline::AttributionMethod& method : pipeline::attribution_methods()) {
    if (!question.all_methods && flops * passes_of(method.name, patches.count()) > kMaxFlops) {
      left_out.emplace_back(str("explain.attribution.", method.name), "nothing");
      continue;
    }
    const pipeline::Attribution result =
        method.attribute({question.model, model, question.input, question.target, "mean", question.progress});
    arrays.add(str("explain.attribution.", method.name), result.map, Encoding::f32);
    Json row{{"method", method.name}, {"help", method.help}};
    row.update(curves.add(method.name, analysis::descending_patches(result.map), arrays));
    if (result.completeness)
      row["completeness"] = {{"sum", finite_or_text(result.completeness->sum)},
                             {"difference", finite_or_text(result.completeness->difference)}};
    rows.push_back(row);
  }
  Json random{{"method", "random"}, {"help", "the patches in a random order"}};
  random.update(curves.add("random", random_order(patches.count()), arrays));
  rows.push_back(random);
  return rows;
}

// How much the logit falls without each head.
void add_head_ablation(const ClassQuestion& question, Arrays& arrays,
                       std::vector<std::pair<std::string, std::string>>& left_out) {
  constexpr const char* kName = "explain.ablation.heads";
  const models::VisionTransformer& model = question.differentiable;
  const int64_t depth = model.config().depth, heads = model.config().num_heads;
  const double passes = static_cast<double>(depth * heads) / 2;  // blocks before the head's run once
  if (!question.all_methods && models::forward_flops(model, question.input.shape()) * passes > kMaxFlops) {
    left_out.emplace_back(kName, "nothing");
    return;
  }
  const ComputeTeam team(question.model.session().threads());
  const Tensor changes = models::head_ablation(model, question.input, [&](int64_t, int64_t) {
    if (question.progress) question.progress(0, -1);
  });
  const Tensor falls = Tensor::empty({depth, heads});
  const int64_t classes = changes.size(3);
  for (int64_t i = 0; i < falls.numel(); ++i)
    falls.data<float>()[i] = -changes.data<float>()[i * classes + question.target];
  arrays.add(kName, falls, Encoding::f32);
}

double norm_of(const Tensor& tensor) {
  const Tensor values = tensor.to(DType::f32).contiguous();
  double sum = 0;
  for (int64_t i = 0; i < values.numel(); ++i) {
    const auto value = static_cast<double>(values.data<float>()[i]);
    sum += value * value;
  }
  return std::sqrt(sum);
}

// The weight with the greatest gradient, and its gradient by a central difference.
Json checked_weight(const ClassQuestion& question, const nn::NamedTensor& gradient) {
  constexpr float kStep = 1e-2f;
  const Tensor values = gradient.tensor.contiguous();
  int64_t at = 0;
  for (int64_t i = 1; i < values.numel(); ++i)
    if (std::fabs(values.data<float>()[i]) > std::fabs(values.data<float>()[at])) at = i;
  Tensor weight = question.differentiable.parameter(gradient.name);
  float& element = weight.data<float>()[at];
  const float original = element;
  const auto logit = [&](float changed) {
    element = changed;
    return static_cast<double>(question.differentiable.forward(question.input).data<float>()[question.target]);
  };
  const double above = logit(original + kStep), below = logit(original - kStep);
  element = original;
  std::vector<int64_t> index;
  for (int64_t axis = values.rank() - 1, rest = at; axis >= 0; --axis) {
    index.insert(index.begin(), rest % values.size(static_cast<int>(axis)));
    rest /= values.size(static_cast<int>(axis));
  }
  return {{"name", gradient.name},
          {"index", index},
          {"analytic", finite_or_text(static_cast<double>(values.data<float>()[at]))},
          {"numerical", finite_or_text((above - below) / (2 * static_cast<double>(kStep)))}};
}

Json gradients_json(const ClassQuestion& question) {
  const ComputeTeam team(question.model.session().threads());
  const std::vector<nn::NamedTensor> gradients =
      models::all_class_gradients(question.differentiable, question.input, question.target);
  const std::vector<nn::NamedTensor> parameters = question.differentiable.named_parameters();
  Json values = Json::array(), of_parameters = Json::array(), check;
  const size_t first_parameter = gradients.size() - parameters.size();
  const nn::NamedTensor* checked = nullptr;
  for (size_t i = 0; i < gradients.size(); ++i) {
    Json row{{"name", gradients[i].name}, {"norm", finite_or_text(norm_of(gradients[i].tensor))}};
    (i < first_parameter ? values : of_parameters).push_back(std::move(row));
    if (i >= first_parameter && !checked && gradients[i].tensor.rank() == 2) checked = &gradients[i];
  }
  if (checked) check = checked_weight(question, *checked);
  return {{"class", question.target}, {"values", values}, {"parameters", of_parameters}, {"check", check}};
}

}  // namespace

std::vector<double> probabilities_of(const models::ModelConfig& config, const Tensor& logits) {
  const std::string activation = models::activation_of(config);
  std::vector<double> values(logits.data<float>(), logits.data<float>() + logits.numel());
  if (activation == "sigmoid")
    for (double& value : values) value = 1 / (1 + std::exp(-value));
  if (activation != "softmax") return values;
  const double largest = *std::ranges::max_element(values);
  double sum = 0;
  for (double& value : values) sum += value = std::exp(value - largest);
  for (double& value : values) value /= sum;
  return values;
}

ClassSections add_class_sections(const ClassQuestion& question, Arrays& arrays) {
  Names names(question.class_names);
  ClassSections sections;
  sections.prediction = prediction_json(question, names);
  add_logit_lens(question, names, arrays);
  sections.attributions = add_attributions(question, arrays, sections.left_out);
  add_head_ablation(question, arrays, sections.left_out);
  sections.gradients = gradients_json(question);
  sections.classes = names.json();
  return sections;
}

}  // namespace vitrail::explain
