// The theme that the user chose, before the page is drawn; else the system's.
(() => {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const stored = () => {
    try { return localStorage.getItem("theme"); } catch { return null; }  // storage may be forbidden
  };
  const apply = (theme) => {
    document.documentElement.dataset.theme = theme ?? (system.matches ? "dark" : "light");
    document.getElementById("theme")?.setAttribute("aria-checked", String(isDark()));
  };
  const isDark = () => document.documentElement.dataset.theme === "dark";
  apply(stored());
  system.addEventListener("change", () => apply(stored()));
  document.addEventListener("DOMContentLoaded", () => {
    apply(stored());
    document.getElementById("theme").addEventListener("click", () => {
      const theme = isDark() ? "light" : "dark";
      try { localStorage.setItem("theme", theme); } catch { /* it lasts as long as the page */ }
      apply(theme);
    });
  });
})();
