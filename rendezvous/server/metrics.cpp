#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include "rendezvous/server/http.hpp"

namespace muster::rendezvous {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

class Families {
 public:
  void family(const char* name, const char* help, MetricType type) {
    families_.push_back({name, help, type, {}});
  }
  void value(double value, std::vector<ClientMetric::Label> labels = {}) {
    ClientMetric metric;
    metric.label = std::move(labels);
    (families_.back().type == MetricType::Counter ? metric.counter.value : metric.gauge.value) = value;
    families_.back().metric.push_back(std::move(metric));
  }
  std::string text() const { return prometheus::TextSerializer().Serialize(families_); }

 private:
  std::vector<MetricFamily> families_;
};

template <class Value>
void for_each_job(const Daemon& daemon, Families& out, const char* name, const char* help, Value value) {
  out.family(name, help, MetricType::Gauge);
  for (const auto& [id, job] : daemon.jobs()) out.value(static_cast<double>(value(*job)), {{"job", id}});
}

}  // namespace

std::string metrics_text(const Daemon& daemon) {
  Families out;
  out.family("muster_connections_total", "Connections accepted.", MetricType::Counter);
  out.value(static_cast<double>(daemon.counters().connections));
  out.family("muster_refusals_total", "Connections refused, for whatever reason.", MetricType::Counter);
  out.value(static_cast<double>(daemon.counters().refusals));
  out.family("muster_sessions", "Connections that are open.", MetricType::Gauge);
  out.value(static_cast<double>(daemon.sessions()));
  out.family("muster_journal_bytes", "Size of the journal; 0 without one.", MetricType::Gauge);
  out.value(static_cast<double>(daemon.journal_bytes()));
  out.family("muster_journal_lost", "1 while the journal cannot be written; 0 otherwise, and without one.",
             MetricType::Gauge);
  out.value(daemon.lost_journal() != nullptr ? 1 : 0);
  out.family("muster_jobs", "Jobs that the daemon knows, those that are over included.", MetricType::Gauge);
  out.value(static_cast<double>(daemon.jobs().size()));
  for_each_job(daemon, out, "muster_job_phase", "0 gathering, 1 running, 2 draining, 3 stopping, 4 over.",
               [](const HostedJob& job) { return static_cast<int>(job.job().phase()); });
  for_each_job(daemon, out, "muster_job_nodes", "Nodes that belong to the job, spares included.",
               [](const HostedJob& job) { return job.job().membership().all().size(); });
  for_each_job(daemon, out, "muster_job_nodes_connected", "Nodes whose connection stands.",
               [](const HostedJob& job) { return job.connected(); });
  for_each_job(daemon, out, "muster_job_workers", "World size of the live round; 0 without one.",
               [](const HostedJob& job) { return job.job().round() ? job.job().round()->world_size() : 0; });
  for_each_job(daemon, out, "muster_job_round", "Number of the newest round.",
               [](const HostedJob& job) { return job.job().snapshot(HostedJob::now()).last_round; });
  for_each_job(
      daemon, out, "muster_job_restarts", "Restarts after failures in the newest round's count.",
      [](const HostedJob& job) { return job.job().round() ? job.job().round()->state().restart_count : 0; });
  return out.text();
}

}  // namespace muster::rendezvous
