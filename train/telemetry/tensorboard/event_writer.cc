#include "train/telemetry/tensorboard/event_writer.h"

#include <cmath>

#include "train/telemetry/tensorboard/event.pb.h"

namespace ringlet::train::tensorboard {

namespace {

void add_value(Event& event, const std::string& tag, double value) {
  if (!std::isfinite(value)) return;
  Value* entry = event.mutable_summary()->add_value();
  entry->set_tag(tag);
  entry->set_simple_value(static_cast<float>(value));
}

}  // namespace

void EventWriter::step_done(const train::StepReport& report) {
  Event event;
  event.set_step(report.step);
  add_value(event, "train/loss", report.loss);
  add_value(event, "train/learning_rate", report.lr);
  add_value(event, "train/grad_norm", report.grad_norm);
  add_value(event, "train/samples_per_second",
            static_cast<double>(report.samples) / report.seconds);
  if (report.loss_scale > 0) {
    add_value(event, "train/loss_scale", report.loss_scale);
    add_value(event, "train/skipped", report.skipped ? 1 : 0);
  }
  file_.add(event);
}

void EventWriter::epoch_done(const train::EpochReport& report) {
  if (report.step == first_step_ && count_epochs(file_.path().parent_path(), first_step_) > 0) {
    return;
  }
  Event event;
  event.set_step(report.step);
  add_value(event, "epoch/train_loss", report.train_loss);
  for (const train::Figure& figure : report.told) {
    add_value(event, "epoch/train_" + key_of(figure), figure.value);
  }
  add_value(event, "epoch/test_loss", report.test.loss);
  if (report.test.figures.empty()) {
    add_value(event, "epoch/test_accuracy", report.test.accuracy());
  }
  for (const train::Figure& figure : report.test.figures) {
    if (key_of(figure) == "loss") continue;  // stands there already
    add_value(event, "epoch/test_" + key_of(figure), figure.value);
  }
  add_value(event, "epoch/samples_per_second", report.samples_per_second);
  add_value(event, "epoch/sync_share", report.sync_share);
  if (report.stages) add_value(event, "epoch/bubble", report.stages->bubble);
  file_.add(event);
  file_.flush();
}

void EventWriter::verified(const train::VerificationReport& report) {
  const std::filesystem::path folder = file_.path().parent_path();
  if (report.step == first_step_ && count_verifications(folder, first_step_) > 0) return;
  Event event;
  event.set_step(report.step);
  for (const train::Verified& set : report.sets) {
    add_value(event, kVerifyTag + set.name + "/accuracy", set.figures.grid.mean);
    add_value(event, kVerifyTag + set.name + "/xnorm", set.mean_length);
  }
  file_.add(event);
  file_.flush();
}

void EventWriter::saved(const std::string&) { file_.flush(); }

}  // namespace ringlet::train::tensorboard
