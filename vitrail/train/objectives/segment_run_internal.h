// SPDX-License-Identifier: Apache-2.0
#pragma once
// The state and the steps of a run with the objective "segment": segment_run.cpp sets it up, saves and resumes it, and
// trains; segment_evaluation.cpp evaluates and keeps the best weights; segment_report.cpp writes the report.
#include <memory>
#include <optional>
#include <string>

#include "vitrail/sam/mask_evaluation.h"
#include "vitrail/tensor/caching_allocator.h"
#include "vitrail/train/objectives/segment_data_internal.h"
#include "vitrail/train/objectives/segment_model_internal.h"
#include "vitrail/train/objectives/segment_run.h"
#include "vitrail/train/objectives/segment_step_internal.h"
#include "vitrail/train/run/run_events_internal.h"
#include "vitrail/train/run/run_folder_internal.h"
#include "vitrail/train/run/throughput_meter_internal.h"

namespace vitrail::train {

class SegmentRun {
 public:
  SegmentRun(const Recipe& recipe, const TrainerOptions& options, const TrainerCallbacks& callbacks, int threads);
  TrainingResult run();

 private:
  // segment_run.cpp
  void log_setup() const;
  bool goes_on() const;  // whether epochs follow
  std::string preprocessing() const;
  void restore();
  void save();
  Counters current_counters() const;
  TrainingResult result(bool stopped) const;
  bool train_epoch();
  bool train_batch(std::vector<DrawnSample> batch);
  bool end_step(const StepResult& step);
  void log_interval(const StepResult& step);
  void report_progress() const;
  void log(const std::string& message) const { callbacks_.message ? callbacks_.message(message) : void(); }
  bool stop_requested() const { return callbacks_.stop && callbacks_.stop(); }
  // Including previous resumptions, until the evaluation at the end.
  double seconds() const { return end_seconds_.value_or(counters_.seconds + throughput_.seconds()); }
  EpochLength length() const { return {batches_, steps_}; }

  // segment_evaluation.cpp
  sam::Predictor predictor() const;
  sam::MaskEvaluation evaluate(const sam::InstanceDataset& dataset, Progress::Phase phase);
  void validate(EpochResult& result);
  void finish_epoch();
  bool out_of_patience() const;
  void keep_best(int64_t epoch, const Candidate& candidate);
  void write_model_folder(const char* name, const std::vector<nn::NamedTensor>& weights) const;
  void final_evaluation();

  // segment_report.cpp
  void update_report(bool finished);
  std::vector<image::Image> overlays() const;

  CachingAllocatorScope memory_;  // recycles tensor memory from step to step
  ProcessGroup group_;
  const Recipe& recipe_;
  const TrainerCallbacks& callbacks_;
  int threads_;
  RunFolder folder_;
  std::optional<CheckpointState> state_;  // the resumed checkpoint; restore() releases its tensors
  SegmentData data_;
  std::vector<ImageSet> image_sets_;  // for the checkpoint
  PreparedSam prepared_;
  SegmentSamples samples_;
  SegmentDraw draw_;
  int64_t batches_, steps_;  // per epoch: batches, optimiser steps
  SegmentStep step_;
  WeightUpdate update_;
  Position position_;
  Counters counters_;
  std::optional<MetricsLog> metrics_log_;
  std::vector<std::pair<std::string, std::string>> environment_;  // for the report
  ThroughputMeter throughput_;
  std::optional<double> end_seconds_;       // set once the run has ended: all its files and its result have the same
  double waited_ = 0;                       // seconds for samples
  Clock::time_point saved_ = Clock::now();  // time of the last checkpoint
  int64_t saved_step_ = 0;                  // optimiser step of the last checkpoint
};

}  // namespace vitrail::train
