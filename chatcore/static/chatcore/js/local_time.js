// Show a time in the reader's time zone: only the time for today, else with the date. The tooltip
// has the full date and time.

class LocalTime extends HTMLElement {
  static observedAttributes = ["datetime"];

  attributeChangedCallback() {
    const moment = new Date(this.getAttribute("datetime"));
    if (isNaN(moment)) return;
    const format = (options) =>
      new Intl.DateTimeFormat(document.documentElement.lang, options).format(moment);
    const now = new Date();
    const today = moment.toDateString() === now.toDateString();
    const year = moment.getFullYear() === now.getFullYear() ? undefined : "numeric";
    this.textContent = format(
      today
        ? { timeStyle: "short" }
        : { year, month: "short", day: "numeric", hour: "numeric", minute: "2-digit" },
    );
    this.title = format({ dateStyle: "full", timeStyle: "medium" });
  }
}

customElements.define("local-time", LocalTime);
