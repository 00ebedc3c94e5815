"use strict";
const slider = document.querySelector("#k");
if (slider) {
  const bars = [...document.querySelectorAll("[data-distance]")];
  const samples = [...document.querySelectorAll("article[data-at]")];
  const counts = slider.dataset.counts.split(",").map(Number);
  const show = () => {
    const k = Number(slider.value);
    const within = counts.slice(0, k + 1).reduce((sum, pairs) => sum + pairs, 0);
    for (const bar of bars) bar.classList.toggle("out", Number(bar.dataset.distance) > k);
    for (const sample of samples) sample.classList.toggle("far", Number(sample.dataset.at) > k);
    document.querySelector("#within").textContent =
      `k = ${k}: ${within.toLocaleString("en")} pairs, ${counts[k].toLocaleString("en")} of them at distance ${k}`;
  };
  slider.addEventListener("input", show);
  show();
}
const search = document.querySelector("#search");
if (search) {
  const samples = [...document.querySelectorAll("article")];
  const texts = samples.map((sample) => sample.textContent.toLowerCase());
  search.addEventListener("input", () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    samples.forEach((sample, at) => {
      sample.hidden = !words.every((word) => texts[at].includes(word));
      shown += !sample.hidden;
    });
    document.querySelector("#shown").textContent = `${shown} of ${samples.length} shown`;
  });
}
