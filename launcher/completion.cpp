#include "launcher/completion.hpp"

#include <fmt/format.h>

#include "launcher/option_table.hpp"

namespace muster::launcher {

namespace {

// @...@ are filled in. Bash cuts words at "=" and ":", so "--tee=0:1" comes as five words.
constexpr const char* kBash = R"bash(# bash completion for muster, printed by: muster --print-completion bash
_muster() {
  local i=1 option= program= cur=${COMP_WORDS[COMP_CWORD]}
  COMPREPLY=()
  while ((i < COMP_CWORD)); do
    case ${COMP_WORDS[i]} in
      --)
        program=next
        ((i += 1))
        break
        ;;
      @VALUED@)
        option=${COMP_WORDS[i]}
        ((i += 1))
        if [[ ${COMP_WORDS[i]} == = ]]; then
          if ((i == COMP_CWORD)); then cur=; else ((i += 1)); fi
        fi
        if ((i < COMP_CWORD)); then
          option=
          ((i += 1))
          while ((i < COMP_CWORD)) && [[ ${COMP_WORDS[i]} == [:=]* ]]; do ((i += 2)); done
        fi
        ;;
      -*) ((i += 1)) ;;
      *)
        program=given
        break
        ;;
    esac
  done
  if [[ $program == given ]] || { [[ $program == next ]] && ((i < COMP_CWORD)); }; then
    return
  fi
  if [[ -n $option ]]; then
    case $option in
@VALUES@    esac
    return
  fi
  if [[ $cur == -* && $program != next ]]; then
    mapfile -t COMPREPLY < <(compgen -W '@OPTIONS@' -- "$cur")
    return
  fi
  [[ -z $cur || $cur == */* ]] || mapfile -t COMPREPLY < <(compgen -c -f -- "$cur" | sort -u)
}
complete -o bashdefault -o default -F _muster muster
# A link in torchrun's place, and not torchrun itself.
if [[ $(readlink -f -- "$(type -P torchrun)" 2> /dev/null) == */muster ]]; then
  complete -o bashdefault -o default -F _muster torchrun
fi
)bash";

constexpr const char* kZsh = R"zsh(#compdef muster torchrun
# zsh completion for muster, printed by: muster --print-completion zsh
_muster() {
  _arguments -s -S \
@OPTIONS@    '(-)1:program:{ _alternative "files:file:_files" "commands:command:_command_names -e" }' \
    '*::argument:_normal'
}
# A file _muster on fpath is run to complete; what is sourced says what it completes.
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
  _muster
else
  (( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
  compdef _muster muster torchrun
fi
)zsh";

void replace(std::string& text, const std::string& mark, const std::string& by) {
  text.replace(text.find(mark), mark.size(), by);
}

// All spellings of a row's name, parted by `separator`.
std::string spellings(const OptionRow& row, const std::string& separator) {
  std::string text = row.long_name;
  if (with_underscores(row.long_name) != row.long_name) text += separator + with_underscores(row.long_name);
  if (*row.short_name) text += separator + row.short_name;
  return text;
}

std::string bash_values(const OptionRow& row) {
  std::string by;
  if (*row.words)
    by = fmt::format("-W '{}'", row.words);
  else if (row.kind == ValueKind::folder)
    by = "-d";
  else
    return "";
  // A value follows the key's "=" at once. Outside of a completion compopt only complains.
  const char* no_blank = row.kind == ValueKind::pairs ? "; compopt -o nospace 2> /dev/null" : "";
  return fmt::format("      {}) mapfile -t COMPREPLY < <(compgen {} -- \"$cur\"){} ;;\n",
                     spellings(row, " | "), by, no_blank);
}

std::string for_bash() {
  std::string valued;
  std::string values;
  std::string options;
  for (const OptionRow& row : option_table()) {
    options += (options.empty() ? "" : " ") + std::string(row.long_name);
    if (*row.short_name) options += std::string(" ") + row.short_name;
    if (row.is_flag()) continue;
    valued += (valued.empty() ? "" : " | ") + spellings(row, " | ");
    values += bash_values(row);
  }
  std::string text = kBash;
  replace(text, "@VALUED@", valued);
  replace(text, "@VALUES@", values);
  replace(text, "@OPTIONS@", options);
  return text;
}

// Within single quotes and a specification of _arguments.
std::string for_zsh(const std::string& prose) {
  std::string text;
  for (const char byte : prose) {
    if (byte == '\'')
      text += "'\\''";
    else if (byte == '[' || byte == ']' || byte == ':' || byte == '\\')
      text += std::string("\\") + byte;
    else
      text += byte;
  }
  return text;
}

std::string zsh_value(const OptionRow& row) {
  if (row.is_flag()) return "";
  std::string action;
  if (*row.words)
    action = fmt::format("({})", row.words);
  else if (row.kind == ValueKind::folder)
    action = "_files -/";
  else if (row.kind == ValueKind::file)
    action = "_files";
  return fmt::format(":{}:{}", for_zsh(row.value_name), action);
}

std::string for_zsh() {
  std::string options;
  for (const OptionRow& row : option_table()) {
    const std::string rest = fmt::format("[{}]{}", for_zsh(row.help), zsh_value(row));
    const char* repeated = row.adds_up() ? "*" : "";
    options += fmt::format("    '{}{}{}{}' \\\n", repeated, row.long_name, row.is_flag() ? "" : "=", rest);
    if (*row.short_name)
      options += fmt::format("    '{}{}{}{}' \\\n", repeated, row.short_name, row.is_flag() ? "" : "+", rest);
  }
  std::string text = kZsh;
  replace(text, "@OPTIONS@", options);
  return text;
}

}  // namespace

std::string completion_for(const std::string& shell) { return shell == "zsh" ? for_zsh() : for_bash(); }

}  // namespace muster::launcher
