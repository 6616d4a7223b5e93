// What a request for this node's health gets: a status that a probe understands, and JSON for people.
#pragma once

#include <string>
#include <string_view>

#include "agent/core/vitals.hpp"

namespace muster::agent {

/// What does not change while the job runs.
struct HealthSubject {
  std::string job;
  std::string node;
  Duration progress_limit{};  ///< 0: none
};

struct HealthAnswer {
  int status = 200;  ///< 503: some rank is stuck, and `why` names it
  std::string body;  ///< JSON, one line
};

/// /health, /healthz and / are the same page; all others are 404. Pure.
HealthAnswer answer_health(std::string_view target, const HealthSubject& subject, const Vitals& vitals);

}  // namespace muster::agent
